// node dev/serve.mjs [port] [tokens=24] [layers=6] [heads=8] [k=0] [towers=1] [pair=1]: the built page over made-up attention.
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { Fake } from "./fake.mjs";

const [port = "8123", ...rest] = process.argv.slice(2);
const fake = new Fake(
  Object.fromEntries(rest.map((each) => each.split("=")).map(([name, value]) => [name, Number(value)])),
);
const folder = new URL("../../src/attention_atlas/serve/static/", import.meta.url);
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data: blob:";
const KINDS = { html: "text/html", js: "text/javascript", css: "text/css" };
const kept = new Map();

createServer((request, response) => {
  const path = new URL(request.url, "http://localhost").pathname.slice(1) || "page.html";
  try {
    if (path.startsWith("api/")) {
      const asked = decodeURIComponent(path.slice(4));
      if (!kept.has(asked)) kept.set(asked, fake.answer(asked));
      return response.end(kept.get(asked));
    }
    response.setHeader("content-type", `${KINDS[path.split(".").pop()]}; charset=utf-8`);
    response.setHeader("content-security-policy", POLICY);
    return response.end(readFileSync(new URL(path, folder)));
  } catch (error) {
    return response.writeHead(404).end(String(error));
  }
}).listen(Number(port), "127.0.0.1", () => console.log(`http://127.0.0.1:${port}/`));
