// The part of Markdown that models write, as a tree: {tag, text} or {tag, children}. Nothing in a text becomes HTML.

// `code`, **strong** and *emphasis* inside of a line.
function inline(text) {
  const parts = [];
  const mark = /`([^`]+)`|\*\*([^*]+)\*\*|\*([^*\s][^*]*)\*/g;
  let end = 0;
  for (const found of text.matchAll(mark)) {
    if (found.index > end) parts.push({tag: 'span', text: text.slice(end, found.index)});
    const [whole, code, strong, emphasis] = found;
    parts.push(code ? {tag: 'code', text: code} : strong ? {tag: 'strong', text: strong} : {tag: 'em', text: emphasis});
    end = found.index + whole.length;
  }
  if (end < text.length) parts.push({tag: 'span', text: text.slice(end)});
  return parts;
}

// Lines with a blank or another kind of line behind them end a block.
function markdown(source) {
  const blocks = [];
  let fence = null;
  const last = (tag) => {
    const block = blocks[blocks.length - 1];
    return block && block.tag === tag && !block.closed ? block : null;
  };
  for (const line of source.split('\n')) {
    if (fence) {
      if (line.trim().startsWith('```')) fence = null;
      else fence.children[0].text += line + '\n';
      continue;
    }
    const item = /^\s*(?:([-*•])|(\d+)[.)])\s+(.*)$/.exec(line), title = /^#{1,6}\s+(.*)$/.exec(line);
    if (line.trim().startsWith('```')) {
      blocks.push(fence = {tag: 'pre', children: [{tag: 'code', text: ''}]});
    } else if (line.trim() === '') {
      if (last('p')) last('p').closed = true;
    } else if (title) {
      blocks.push({tag: 'h2', children: inline(title[1])});
    } else if (item) {
      const tag = item[1] ? 'ul' : 'ol';
      if (!last(tag)) blocks.push(tag === 'ol' ? {tag, start: Number(item[2]), children: []} : {tag, children: []});
      last(tag).children.push({tag: 'li', children: inline(item[3])});
    } else if (last('p')) {
      last('p').children.push({tag: 'br'}, ...inline(line));
    } else {
      blocks.push({tag: 'p', children: inline(line)});
    }
  }
  return blocks;
}

if (typeof module !== 'undefined') module.exports = {inline, markdown};
