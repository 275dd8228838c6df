// The explorer's page in a notebook: shown in a frame, with the limits kept equal to those that Python has.
//
// The page tells {cbabo: "limits", thresholds, probability} whenever its limits rest, and takes {cbabo: "set", thresholds}.
// The frame may run the page's scripts and save files, but has none of the rights of the notebook around it.

function render({ model, el }) {
  const frame = document.createElement("iframe");
  frame.setAttribute("sandbox", "allow-scripts allow-downloads");
  frame.title = "cbabo explorer";
  frame.style.cssText = "width: 100%; border: 1px solid #c8ccd0; background: white; display: block";
  let heard = null; // The limits as the page told them last, or null before it has told any.

  const same = (a, b) => Object.keys(a).length === Object.keys(b).length && Object.keys(a).every((name) => a[name] === b[name]);
  const size = () => (frame.style.height = `${model.get("height")}px`);
  const send = () => {
    const limits = model.get("limits");
    if (heard !== null && !same(heard, limits)) frame.contentWindow.postMessage({ cbabo: "set", thresholds: limits }, "*");
  };
  const hear = (event) => {
    if (event.source !== frame.contentWindow || event.data?.cbabo !== "limits") return;
    const first = heard === null;
    heard = event.data.thresholds;
    if (first) {
      send(); // Python's limits count at the start.
      if (!same(heard, model.get("limits"))) return;
    }
    model.set("probability", event.data.probability ?? null);
    model.set("limits", heard);
    model.save_changes();
  };

  size();
  window.addEventListener("message", hear);
  model.on("change:limits", send);
  model.on("change:height", size);
  frame.srcdoc = model.get("page");
  el.append(frame);
  return () => {
    window.removeEventListener("message", hear);
    model.off("change:limits", send);
    model.off("change:height", size);
  };
}

export default { render };
