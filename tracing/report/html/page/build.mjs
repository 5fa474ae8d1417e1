// Bundles the page into ../bundle, with the digest of its source: a test compares it with the source.
import { createHash } from "node:crypto"
import { readFileSync, readdirSync, writeFileSync } from "node:fs"
import { build } from "esbuild"

const digest = createHash("sha256")
for (const name of readdirSync("src").sort()) digest.update(readFileSync(`src/${name}`))
digest.update(readFileSync("package-lock.json"))
const banner = `/* source sha256 ${digest.digest("hex")}; licenses: MIT, of preact, codemirror, lezer and fzstd */`

const { outputFiles } = await build({
  entryPoints: ["src/report.tsx", "src/runs.tsx", "src/report.css"],
  outdir: "../bundle",
  bundle: true,
  minify: true,
  write: false,
  target: "es2022",
  format: "iife",
  charset: "utf8",
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "none",
})
for (const file of outputFiles) {
  // in an HTML file nothing of a program may look like the end of its element
  const text = file.text.replaceAll("</script", "<\\/script").replaceAll("<!--", "<\\!--")
  writeFileSync(file.path, `${banner}\n${text}`)
  console.log(file.path, text.length)
}
