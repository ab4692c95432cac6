// How does a file that contains its scripts run them? The first at once; each other one, with components that are not
// part of a first picture, when one of them is shown. They are code of the form `exports.x = …; require("./name")`, put
// in by the build.
(() => {
  const first = {};
  const ran = {};
  const require = (path) => {
    const name = path.split("/").pop();
    return ran[name] ?? (name === "/*ATLAS-NAME*/" ? first : run(name));
  };
  function run(name) {
    const code = document.querySelector(`script[data-part="${name}"]`).textContent;
    const script = document.createElement("script");
    window.atlasRun = (part) => part((ran[name] = {}), require);
    script.textContent = `atlasRun(function (exports, require) { "use strict"; ${code} })`;
    document.head.append(script);
    script.remove();
    return ran[name];
  }
  window.atlasLater = require;
  // eslint-disable-next-line @typescript-eslint/no-unused-vars -- the code that is put in names them
  (function (exports, require) {
    "use strict";
    /*ATLAS-FIRST*/
  })(first, require);
})();
