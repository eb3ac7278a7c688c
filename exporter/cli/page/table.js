// Tables that can be sorted. A column has a title, the text or the element of a row, and the value that it is sorted by.

// A click on a head sorts by its column; another click turns the order round.
function drawTable(table, columns, rows, by = null, descending = true) {
  const head = document.createElement("tr");
  for (const column of columns) {
    const cell = document.createElement("th");
    cell.textContent = column.title;
    cell.className = column.isName ? "name" : "";
    cell.tabIndex = 0;
    if (column === by) cell.setAttribute("aria-sort", descending ? "descending" : "ascending");
    const sort = () => drawTable(table, columns, rows, column, column === by ? !descending : !column.isName);
    cell.addEventListener("click", sort);
    cell.addEventListener("keydown", (event) => event.key === "Enter" && sort());
    head.append(cell);
  }
  const lines = (by ? sorted(rows, by.value, descending) : rows).map((r) => {
    const line = document.createElement("tr");
    for (const column of columns) {
      const cell = document.createElement("td");
      cell.append(column.text(r));
      cell.className = column.isName ? "name" : "";
      line.append(cell);
    }
    return line;
  });
  table.replaceChildren(head, ...lines);
}
