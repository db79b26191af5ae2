// Draws the graphs of a page that holds their curves itself.
"use strict";
(async () => {
  const drawn = JSON.parse(document.getElementById("drawn").textContent);
  const viewer = new Viewer(document.getElementById("views"));
  // report.html#1 opens at the first handover, report.html#0 shows the whole run.
  const wanted = location.hash ? Number(location.hash.slice(1)) : drawn.open;
  try {
    await viewer.draw(drawn, document.getElementById("curves").textContent, drawn.views[wanted] ?? drawn.views[drawn.open]);
  } catch (error) {
    for (const { place } of drawn.figures) document.getElementById(place).textContent = `This browser cannot draw the graph: ${error}`;
    return;
  }
  requestAnimationFrame(() => requestAnimationFrame(() => { document.body.dataset.drawn = "yes"; }));
})();
