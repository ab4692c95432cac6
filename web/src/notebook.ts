// Host: a notebook cell, through anywidget.
import looks from "./looks/all.css?inline";
import { mountAtlas, type Mounted, type Options } from "./mount";
import { TABS } from "./panels/tabs";
import { widgetSource, type Model } from "./source/widget";
import type { Picks } from "./source/wire";

function render({ model, el }: { model: Model; el: HTMLElement }): () => void {
  const style = document.createElement("style");
  style.textContent = looks;
  const place = document.createElement("div");
  el.append(style, place);
  const source = widgetSource(model);
  const options = (model.get("options") ?? {}) as Options;
  let said = "";
  let mounted: Mounted | undefined;
  let closed = false;
  const heard = () => {
    const picks = model.get("picks") as Partial<Picks>;
    // The picks that this cell sent come back too.
    if (JSON.stringify(picks) !== said) mounted?.setPicks(picks);
  };
  mountAtlas(place, source, TABS, {
    chrome: "cell",
    ...options,
    picks: { ...options.picks, ...(model.get("picks") as Partial<Picks> | null) },
    onPicks(picks) {
      said = JSON.stringify(picks);
      if (said === JSON.stringify(model.get("picks"))) return;
      model.set("picks", picks);
      model.save_changes();
    },
  }).then(
    (atlas) => {
      if (closed) atlas.close();
      mounted = atlas;
      model.on("change:picks", heard as never);
    },
    () => {},
  );
  return () => {
    closed = true;
    model.off("change:picks", heard as never);
    source.close();
    mounted?.close();
  };
}

export default { render };
