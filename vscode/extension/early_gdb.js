// A gdb that reads the compiler's symbols while the debugged program still imports torch. The session that
// a stop of the program requests finds it ready; a second session, of another process, starts its own.
const { spawn } = require("child_process");
const { readFileSync } = require("fs");
const { createServer } = require("net");
const { tmpdir } = require("os");
const { join } = require("path");
const vscode = require("vscode");

let early; // the words that started it, the process, and the session of the program

function gdbWords({ gdb, commands }) {
    const first = (commands || []).flatMap((line) => ["-iex", line]);
    return [gdb || "gdb", "-nx", "-q", ...first, "-i", "dap"];
}

function started(session) {
    const { request, env } = session.configuration;
    if (session.type !== "debugpy" || request !== "launch" || !(env && env.TRACING_STOP_SESSION)) {
        return;
    }
    const requested = JSON.parse(readFileSync(env.TRACING_STOP_SESSION, "utf8"));
    if (requested.type === "triton-gdb") {
        ended();
        const [gdb, ...words] = gdbWords(requested);
        early = { words: [gdb, ...words].join("\n"), gdb: spawn(gdb, words), id: session.id };
        early.gdb.on("error", () => (early = undefined)); // the session that starts gdb anew says why
        early.gdb.stderr.on("data", (text) => vscode.debug.activeDebugConsole.append(`${text}`));
    }
}

function ended(session) {
    if (early && (!session || early.id === session.id)) {
        early.gdb.kill();
        early = undefined;
    }
}

// VSCode connects to a socket, whose other end is gdb's standard input and output
function connected(gdb) {
    const path = join(tmpdir(), `triton-gdb-${gdb.pid}.socket`);
    return new Promise((resolve, reject) => {
        const server = createServer((editor) => {
            server.close();
            editor.pipe(gdb.stdin);
            gdb.stdout.pipe(editor);
            editor.on("close", () => gdb.kill());
        });
        server.on("error", reject);
        server.listen(path, () => resolve(new vscode.DebugAdapterNamedPipeServer(path)));
    });
}

function createDebugAdapterDescriptor(session) {
    const [gdb, ...words] = gdbWords(session.configuration);
    const there = early && early.gdb.exitCode === null && early.words === [gdb, ...words].join("\n");
    if (!there) {
        return new vscode.DebugAdapterExecutable(gdb, words);
    }
    const taken = early.gdb;
    early = undefined;
    return connected(taken);
}

exports.earlyGdb = { createDebugAdapterDescriptor, started, ended };
