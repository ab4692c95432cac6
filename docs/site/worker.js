// Search runs in a Worker, which browsers refuse to pages that are opened from a disk. There a hidden
// frame runs the same script instead: its window has the two names that such a script uses.
if (location.protocol === "file:") {
  window.Worker = class {
    constructor(address) {
      this.waiting = [];
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      inside.postMessage = (data) => setTimeout(() => this.onmessage?.({ data }));
      const script = this.frame.contentDocument.createElement("script");
      script.src = new URL(address, document.baseURI).href;
      script.onload = () => {
        this.inside = inside;
        for (const data of this.waiting) inside.onmessage({ data });
      };
      script.onerror = () => this.onerror?.(new Event("error"));
      this.frame.contentDocument.body.append(script);
    }
    postMessage(data) {
      if (this.inside) setTimeout(() => this.inside?.onmessage({ data }));
      else this.waiting.push(data);
    }
    terminate() {
      this.frame.remove();
      this.inside = null;
    }
  };
}
