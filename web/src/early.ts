// Host: asks for what a served page needs first, while the browser still reads the page's own script.
import { askEarly } from "./source/early";
import { fetched, pageName } from "./source/http";

// The page's script may have come first; it then asks itself.
if (window.atlasEarly === undefined) {
  const page = pageName();
  const told = document.documentElement.dataset;
  const answers = askEarly((path) => fetched(document.baseURI, page, path), location.hash, told);
  window.atlasEarly = { page, answers };
}
