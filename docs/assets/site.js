// What the theme leaves out for readers who use the keyboard or a screen reader.
const BOXES = "article pre > code, article .md-typeset__scrollwrap";

// Boxes that scroll sideways can be reached with the keyboard.
function reachBoxes() {
  for (const box of document.querySelectorAll(BOXES)) {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  }
}

// The buttons of each block of code are a landmark, and landmarks have different names.
function nameBlocks() {
  document.querySelectorAll(".md-code__nav").forEach((nav, i) => {
    nav.ariaLabel = `Block of code ${i + 1}`;
  });
}

addEventListener("load", reachBoxes);
addEventListener("load", nameBlocks);
addEventListener("resize", reachBoxes);
