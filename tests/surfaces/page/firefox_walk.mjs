// The main path through the explorer in Firefox, driven over WebDriver BiDi. Called as: node firefox_walk.mjs FIREFOX ADDRESS PICTURE.
//
// Prints one line of JSON: what was seen on the way, and what the page complained about.

import puppeteer from "puppeteer-core";

const [firefox, address, picture] = process.argv.slice(2);
const browser = await puppeteer.launch({ browser: "firefox", executablePath: firefox, headless: true });
const seen = { complaints: [] };
try {
  const page = await browser.newPage();
  await page.setViewport({ width: 1400, height: 900 });
  page.on("console", (message) => ["error", "warn"].includes(message.type()) && seen.complaints.push(message.text()));
  page.on("pageerror", (error) => seen.complaints.push(String(error)));
  await page.goto(address);
  const until = async (condition) => {
    const end = Date.now() + 30_000;
    while (!(await page.evaluate(condition))) {
      if (Date.now() > end) throw new Error(`never came true: ${condition}`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  };
  const state = () => page.evaluate("JSON.stringify({ at: explorer.state.thresholds, status: explorer.panel.answer.status, mean: explorer.panel.answer.mean[0] })").then(JSON.parse);
  await until("Boolean(window.explorer?.panel.answer) && !document.querySelector('.limit.waiting')");
  seen.first = await state();
  // Drag a thumb from its nominal place, then type into a field.
  const slider = await page.$("[data-limit=stress] input[type=range]");
  const place = await slider.boundingBox();
  await page.mouse.move(place.x + place.width / 2, place.y + place.height / 2);
  await page.mouse.down();
  await page.mouse.move(place.x + place.width / 2 + 60, place.y + place.height / 2, { steps: 4 });
  await page.mouse.up();
  seen.dragged = await state();
  const field = await page.$("[data-limit=frequency] input[type=number]");
  await field.click({ count: 3 });
  await page.keyboard.type("3");
  await page.keyboard.press("Enter");
  await until("explorer.panel.answer.thresholds[1] === 3");
  seen.typed = await state();
  await until("!document.querySelector('.limit.waiting') && explorer.tradeoffs.cells?.work.done");
  seen.price = await page.$eval("[data-limit=frequency] .price", (e) => e.textContent);
  seen.cells = await page.$$eval("#map .cell", (all) => all.length);
  await page.click("#pin");
  seen.pins = await page.$$eval("#pins thead input", (all) => all.length);
  await page.screenshot({ path: picture });
  // Limits that cannot be met, a way out, and back again.
  await page.click("[data-preset=strictest]");
  await until("explorer.panel.answer.status === 'unreachable' && Boolean(document.querySelector('.way button'))");
  seen.unmet = await page.$eval("#ways", (e) => e.textContent);
  await page.click(".way button");
  await until("explorer.panel.answer.status !== 'unreachable'");
  await page.goBack();
  await until("explorer.panel.answer.status === 'unreachable'");
  await page.keyboard.down("Control");
  await page.keyboard.press("z");
  await page.keyboard.up("Control");
  await until("explorer.panel.answer.status !== 'unreachable'");
  seen.last = await state();
} finally {
  await browser.close();
}
console.log(JSON.stringify(seen));
