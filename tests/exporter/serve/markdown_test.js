// The texts of answers as the page shows them.
const assert = require('assert');
const {markdown} = require(process.argv[2]);

const text = (node) => node.text ?? (node.children || []).map(text).join('');
const shape = (source) => markdown(source).map((b) => b.tag + ':' + text(b));

assert.deepStrictEqual(shape('One\ntwo\n\nthree'), ['p:Onetwo', 'p:three']);
assert.strictEqual(markdown('One\ntwo')[0].children[1].tag, 'br');
assert.deepStrictEqual(shape('# Title\n- a\n- b\n1. c'), ['h2:Title', 'ul:ab', 'ol:c']);
assert.strictEqual(markdown('3. c\n\n4. d')[0].start, 3);
assert.strictEqual(markdown('3. c\n\n4. d').length, 1);  // a blank line does not end a list
assert.deepStrictEqual(shape('```js\n- no <b>item</b>\n```\nafter'), ['pre:- no <b>item</b>\n', 'p:after']);
assert.deepStrictEqual(shape('```\nnot closed'), ['pre:not closed\n']);
assert.deepStrictEqual(markdown('a **b** `c*d*` *e* 2 * 3 * 4')[0].children.map((p) => p.tag + ':' + p.text),
    ['span:a ', 'strong:b', 'span: ', 'code:c*d*', 'span: ', 'em:e', 'span: 2 * 3 * 4']);
assert.deepStrictEqual(shape(''), []);
