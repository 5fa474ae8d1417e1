// How the code of each stage is coloured: line by line, without a parser.
import { StreamLanguage, HighlightStyle, syntaxHighlighting, type StringStream } from "@codemirror/language"
import { tags } from "@lezer/highlight"

interface Words {
  comment: RegExp
  keyword: RegExp
  name: RegExp // values and symbols: %0, @f, #blocked
  type: RegExp
}

const PYTHON: Words = {
  comment: /^#.*/,
  keyword: /^(?:def|return|for|in|if|elif|else|while|import|from|as|and|or|not|with|pass|None|True|False|lambda|class|assert|is)\b/,
  name: /^@[\w.]+/,
  type: /^(?:tl|triton|libdevice)\.[\w.]+/,
}
const MLIR: Words = {
  comment: /^\/\/.*/,
  keyword: /^(?:module|func|attributes|loc|true|false|dense|to|step|iter_args|public|private)\b|^"?[a-z_]\w*(?:\.[\w$]+)+"?/,
  name: /^[%@#^][\w$.:#-]+/,
  type: /^(?:tensor|memref|vector|index|[if]\d+|bf16)\b|^![\w.]+/,
}
const LLVM: Words = {
  comment: /^;.*/,
  keyword: /^(?:define|declare|ret|br|label|call|tail|load|store|getelementptr|phi|icmp|fcmp|select|add|sub|mul|fadd|fsub|fmul|fdiv|and|or|xor|shl|lshr|ashr|zext|sext|trunc|bitcast|extractvalue|insertvalue|extractelement|insertelement|asm|sideeffect|attributes|target|source_filename|distinct|align)\b/,
  name: /^[%@!#][\w$.-]*/,
  type: /^(?:ptr|void|float|double|half|bfloat|i\d+)\b/,
}
const PTX: Words = {
  comment: /^\/\/.*/,
  keyword: /^\.[a-z_]\w*|^[a-z]\w*(?:\.[\w:]+)+/,
  name: /^%[\w.]+|^\$[\w]+/,
  type: /^[[\]{}]/,
}
const SASS: Words = { comment: /^\/[*/].*/, keyword: /^[A-Z][A-Z0-9]*(?:\.[\w.]+)+|^[A-Z]{3,}[A-Z0-9]*\b/, name: /^(?:U?R\d+|U?P\d+|R2UR|RZ|PT)\b/, type: /^\.\w+/ }

const STRING = /^"(?:[^"\\]|\\.)*"?/
const NUMBER = /^(?:0x[\da-fA-F]+|\d[\d.]*(?:e[+-]?\d+)?)/

function language(words: Words) {
  return StreamLanguage.define({
    token(stream: StringStream): string | null {
      if (stream.eatSpace()) return null
      if (stream.match(words.comment)) return "comment"
      if (stream.match(STRING) || (words === PYTHON && stream.match(/^'(?:[^'\\]|\\.)*'?/))) return "string"
      if (stream.match(words.type)) return "typeName"
      if (stream.match(words.keyword)) return "keyword"
      if (stream.match(words.name)) return "variableName"
      if (stream.match(NUMBER)) return "number"
      if (!stream.match(/^[\w$]+/)) stream.next()
      return null
    },
  })
}

const BY_STAGE: Record<string, Words> = { python: PYTHON, ttir: MLIR, ttgir: MLIR, llir: LLVM, ptx: PTX, amdgcn: PTX, sass: SASS, diff: MLIR }

const colours = HighlightStyle.define([
  { tag: tags.comment, color: "var(--code-comment)" },
  { tag: tags.string, color: "var(--code-string)" },
  { tag: tags.keyword, color: "var(--code-keyword)" },
  { tag: tags.variableName, color: "var(--code-name)" },
  { tag: tags.typeName, color: "var(--code-type)" },
  { tag: tags.number, color: "var(--code-number)" },
])

export function coloured(stage: string) {
  const words = BY_STAGE[stage]
  return words ? [language(words), syntaxHighlighting(colours)] : []
}
