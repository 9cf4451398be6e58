// Lays the graph out anew for the width of the window, zooms into the bar that is clicked, and finds functions by name.
// It stands in the picture as it is, so it has no character that XML would read: no "less than" and no ampersand.
(function () {
  "use strict";
  var svg = document.documentElement, margin = 10, letter = 7.22, narrowest = 0.2;
  var xhtml = "http://www.w3.org/1999/xhtml", names = "http://www.w3.org/2000/svg";
  var title = document.getElementById("title"), note = document.getElementById("note");
  var back = svg.querySelector("rect"), height = Number(svg.getAttribute("height"));
  var texts = { title: title.textContent, note: note.textContent };
  var bars = Array.prototype.map.call(svg.querySelectorAll("g"), function (group) {
    var rect = group.querySelector("rect");
    return {
      group: group, rect: rect, label: group.querySelector("text"), name: group.getAttribute("data-name"),
      about: group.querySelector("title").textContent, colour: rect.getAttribute("fill"),
      start: Number(group.getAttribute("data-start")), share: Number(group.getAttribute("data-share")),
      row: Number(rect.getAttribute("y")),
    };
  });
  var zoom = { start: 0, share: 1 }, sought = "", width = 0;

  function cut(text, room) {
    var most = Math.floor(room / letter);
    if (text.length > most) return most > 3 ? text.slice(0, most - 1) + "…" : "";
    return text;
  }

  function lay() {
    // Not the inner width, which on a phone is that of what does not fit.
    width = Math.max(280, svg.clientWidth || window.innerWidth || 1200);
    svg.setAttribute("width", width);
    svg.setAttribute("viewBox", "0 0 " + width + " " + height);
    back.setAttribute("width", width);
    title.textContent = cut(texts.title, (width - 2 * margin) * 0.75);
    note.textContent = cut(texts.note, width - 2 * margin);
    var inner = width - 2 * margin, end = zoom.start + zoom.share, found = [];
    bars.forEach(function (bar) {
      var from = Math.max(bar.start, zoom.start), to = Math.min(bar.start + bar.share, end);
      var wide = (to - from) / zoom.share * inner, seen = wide >= narrowest;
      bar.group.style.display = seen ? "" : "none";
      if (!seen) return;
      var left = margin + (from - zoom.start) / zoom.share * inner;
      var isFound = sought !== "" ? bar.about.toLowerCase().indexOf(sought) >= 0 : false;
      if (isFound) found.push([from, to]);
      bar.rect.setAttribute("x", left.toFixed(2));
      bar.rect.setAttribute("width", Math.max(wide - 0.5, 0.1).toFixed(2));
      bar.rect.setAttribute("fill", isFound ? "#d940d9" : bar.colour);
      // A caller of what is zoomed into is wider than the window.
      bar.group.style.opacity = bar.share > zoom.share * 1.000001 ? 0.5 : 1;
      if (!bar.label) {
        bar.label = bar.group.appendChild(document.createElementNS(names, "text"));
        bar.label.setAttribute("y", bar.row + 12.5);
      }
      bar.label.setAttribute("x", (left + 3).toFixed(2));
      bar.label.textContent = cut(bar.name, wide - 6);
    });
    if (sought !== "") note.textContent = cut(count(found) + " matches “" + sought + "”", inner);
    field.parentNode.setAttribute("width", Math.min(inner, 360));
  }

  // Bars above each other are the same time, counted once.
  function count(found) {
    var sum = 0, until = 0;
    found.sort(function (a, b) { return a[0] - b[0]; }).forEach(function (part) {
      if (part[1] > until) {
        sum += part[1] - Math.max(part[0], until);
        until = part[1];
      }
    });
    var of = zoom.share === 1 ? "" : " of what is shown";
    return found.length + " bars, " + (sum / zoom.share * 100).toFixed(1) + " %" + of;
  }

  var holder = document.createElementNS(names, "foreignObject"), field = document.createElementNS(xhtml, "input");
  holder.setAttribute("x", margin);
  holder.setAttribute("y", 50);
  holder.setAttribute("height", 32);
  field.setAttribute("type", "search");
  field.setAttribute("placeholder", "Find functions; tap a bar to zoom");
  field.setAttribute("aria-label", "Find functions");
  field.style.cssText = "box-sizing:border-box;width:100%;height:28px;font:16px sans-serif";
  field.addEventListener("input", function () {
    sought = field.value.trim().toLowerCase();
    lay();
  });
  holder.appendChild(field);
  svg.appendChild(holder);

  // Without it, a phone lays the page out for a wide screen and shrinks it.
  var viewport = document.createElementNS(xhtml, "meta");
  viewport.setAttribute("name", "viewport");
  viewport.setAttribute("content", "width=device-width, initial-scale=1");
  svg.appendChild(viewport);

  bars.forEach(function (bar) {
    bar.group.style.cursor = "pointer";
    bar.group.addEventListener("click", function () {
      // The bar that fills the window leads back to the whole.
      zoom = bar.start === zoom.start ? (bar.share === zoom.share ? bars[0] : bar) : bar;
      lay();
      if (sought === "") note.textContent = cut(bar.about, width - 2 * margin);
    });
  });
  window.addEventListener("keydown", function (event) {
    if (event.key !== "Escape") return;
    zoom = bars[0];
    sought = field.value = "";
    lay();
  });
  window.addEventListener("resize", lay);
  lay();
})();
