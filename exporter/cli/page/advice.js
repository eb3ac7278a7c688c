// The title of a page about quantization, and what it says to try next.

function showTitle(title) {
  const heading = document.createElement("h1");
  heading.textContent = title;
  document.title = title;
  bar.replaceChildren(heading);
}

// Lines of an element's kind and its text: ["p", "…"], ["pre", "…"].
function showAdvice(lines) {
  document.getElementById("next").replaceChildren(...lines.map(([kind, text]) => {
    const element = document.createElement(kind);
    element.textContent = text;
    return element;
  }));
}
