// Browsers start no workers for pages that are opened from a folder (file:), and the search of the
// site is a worker. For such pages, this one runs the script of the worker in a hidden frame.
if (location.protocol === "file:") {
  window.Worker = class {
    constructor(url) {
      this.waiting = []; // messages that arrived before the script was loaded
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inner = this.frame.contentWindow;
      inner.postMessage = (message) => {
        const data = structuredClone(message); // the sender may change its message
        setTimeout(() => this.onmessage?.(new MessageEvent("message", { data })));
      };
      const script = inner.document.createElement("script");
      script.src = url;
      script.onload = () => {
        const waiting = this.waiting;
        this.waiting = null;
        waiting.forEach((data) => this.postMessage(data));
      };
      script.onerror = () => this.onerror?.(new ErrorEvent("error"));
      inner.document.head.append(script);
    }

    postMessage(message) {
      const data = structuredClone(message);
      if (this.waiting) this.waiting.push(data);
      else this.frame.contentWindow?.dispatchEvent(new MessageEvent("message", { data }));
    }

    terminate() {
      this.frame.remove();
    }
  };
}
