/* The search of this site runs in a worker, which browsers refuse to pages that are read from the disk. There, a hidden
   frame takes its place: it loads the worker's script, and messages go back and forth. */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.waiting = [];
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.frame.title = "search";
      this.frame.addEventListener("load", () => this.begin(url), { once: true });
      document.body.append(this.frame);
    }
    begin(url) {
      const inside = this.frame.contentWindow;
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      const script = inside.document.createElement("script");
      script.src = new URL(url, location.href).href;
      script.addEventListener("load", () => {
        this.deliver = (data) => inside.dispatchEvent(new MessageEvent("message", { data }));
        this.waiting.forEach(this.deliver);
      });
      inside.document.body.append(script);
    }
    postMessage(data) {
      if (this.deliver) this.deliver(data);
      else this.waiting.push(data);
    }
    terminate() {
      this.frame.remove();
    }
  };
}
