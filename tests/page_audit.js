// What is wrong with the layout of a page, or of parts of it, and how much was looked at.
// arguments: the parts as a selector, the least contrast that counts as readable
const [selector, least] = arguments;
const parts = [...document.querySelectorAll(selector)].filter(part => part.checkVisibility());
const all = what => new Set(parts.flatMap(part => [...part.querySelectorAll(what)]));
const wrong = [];
const seen = {images: 0, formulas: 0, texts: 0};

const name = e => `<${e.tagName.toLowerCase()} class="${e.getAttribute('class') || ''}"> ` +
  JSON.stringify(e.textContent.trim().replace(/\s+/g, ' ').slice(0, 50));
const scrolls = e => e && e !== document.documentElement &&
  (/auto|scroll/.test(getComputedStyle(e).overflowX) || scrolls(e.parentElement));

const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
const rgba = colour => {
  canvas.clearRect(0, 0, 1, 1);
  canvas.fillStyle = colour;
  canvas.fillRect(0, 0, 1, 1);
  return [...canvas.getImageData(0, 0, 1, 1).data];
};
const ground = e => {
  for (; e; e = e.parentElement) {
    const colour = rgba(getComputedStyle(e).backgroundColor);
    if (colour[3] > 250) return colour;
  }
  return matchMedia('(prefers-color-scheme: dark)').matches ? [18, 18, 18] : [255, 255, 255];
};
const luminance = colour => colour.slice(0, 3).map(v => v / 255)
  .map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
  .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
const contrast = (ink, paper) => {
  const [x, y] = [luminance(ink), luminance(paper)].sort((p, q) => q - p);
  return (x + .05) / (y + .05);
};

const width = document.documentElement.scrollWidth;
if (width > innerWidth) wrong.push(`the page is ${width} pixels wide`);
for (const e of all('*')) {
  const box = e.getBoundingClientRect(), style = getComputedStyle(e);
  if (!box.width || !box.height || style.visibility === 'hidden' || e.closest('svg, mjx-assistive-mml')) continue;
  const out = box.right > innerWidth + 1 || box.left < -1;
  if (out && !scrolls(e.parentElement)) wrong.push('out of the window: ' + name(e));
  const cut = /hidden|clip/.test(style.overflowX) && e.scrollWidth > e.clientWidth + 1;
  const low = /hidden|clip/.test(style.overflowY) && e.scrollHeight > e.clientHeight + 1;
  if ((cut || low) && e.clientWidth > 1 && e.textContent.trim()) wrong.push('clipped: ' + name(e));
  if (![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())) continue;
  seen.texts += 1;
  if (parseFloat(style.fontSize) < 10 && !e.closest('math, sup, sub')) {
    wrong.push(`letters of ${style.fontSize}: ` + name(e));
  }
  const ratio = contrast(rgba(style.color), ground(e));
  if (ratio < least) wrong.push(`contrast ${ratio.toFixed(2)}: ` + name(e));
}
for (const image of all('img')) {
  seen.images += 1;
  if (!image.complete || !image.naturalWidth) wrong.push('not loaded: ' + (image.alt || image.src.slice(0, 60)));
  if (!image.alt.trim()) wrong.push('without alternative text: ' + image.src.slice(0, 60));
}
for (const formula of all('math')) {
  seen.formulas += 1;
  const box = formula.getBoundingClientRect(), around = formula.closest('.formula');
  if (!box.width || !box.height || formula.querySelector('merror')) wrong.push('an empty formula: ' + name(formula));
  if (around && around.scrollWidth > around.clientWidth + 1) wrong.push('a formula to scroll: ' + name(formula));
}
return {wrong: [...new Set(wrong)], ...seen};
