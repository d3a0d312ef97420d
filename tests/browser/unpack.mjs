// Unpack what the package brings (Brotli, which Python's standard library cannot read) into the folder that is named.
// A tar goes on to Python as it is; the browser itself is one file.
import { createReadStream, createWriteStream, mkdirSync } from "node:fs";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { createBrotliDecompress } from "node:zlib";

const [from, to] = process.argv.slice(2);
mkdirSync(to, { recursive: true });
for (const name of ["chromium", "al2023.tar", "fonts.tar", "swiftshader.tar"]) {
  await pipeline(createReadStream(join(from, `${name}.br`)), createBrotliDecompress(), createWriteStream(join(to, name)));
}
