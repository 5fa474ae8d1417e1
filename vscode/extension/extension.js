// gdb's own debug adapter in VSCode: `gdb -i dap`, with the commands of the configuration run first;
// and what configurations ask for: the open file, and recorded runs, kernels and passes.
const { execFile } = require("child_process");
const vscode = require("vscode");
const { earlyGdb } = require("./early_gdb");
const { openReport } = require("./report");

// shown in the editor instead of gdb's message that a file of Triton's or LLVM's build machine is missing
const NO_SOURCE = `This source is not on this machine.
\`make venv SOURCE=1\` brings that of Triton's wheel: then run \`make vscode\`, and press F5.
`;

// gdb stops a process that it attaches to. The pass is further on, so the process goes on at once.
const tracker = {
    createDebugAdapterTracker(session) {
        return {
            onDidSendMessage(message) {
                if (message.event === "stopped" && message.body.reason === "attach") {
                    session.customRequest("continue", { threadId: message.body.threadId || 1 });
                } else if (message.command === "source" && message.success === false) {
                    Object.assign(message, { success: true, body: { content: NO_SOURCE } });
                }
            },
        };
    },
};

const configuration = {
    resolveDebugConfigurationWithSubstitutedVariables(folder, found) {
        return found.pid === undefined ? found : { ...found, pid: Number(found.pid) };
    },
};

// The file in the editor if it is Python, else the case silu; VSCode's own ${file} fails without an editor.
function openFile() {
    const editor = vscode.window.activeTextEditor;
    const python = editor && editor.document.languageId === "python" && editor.document.uri.scheme === "file";
    return python ? editor.document.uri.fsPath : "silu";
}

const chosen = {}; // of one start of a configuration: the run, then its kernel

function recorded({ what, python, cwd }) {
    const run = (!what.endsWith("-name") && chosen.run) || "latest";
    const words = ["-m", "vscode.recorded", what, run, chosen.kernel || ""];
    return new Promise((resolve, reject) => {
        execFile(python, words, { cwd }, (error, output, errors) =>
            error ? reject(new Error(errors.trim() || error.message)) : resolve(JSON.parse(output)),
        );
    });
}

async function pick(asked) {
    if (asked.what === "file") {
        return openFile();
    }
    if (asked.what === "run") {
        delete chosen.run;
        delete chosen.kernel;
    }
    let known = [];
    try {
        known = await recorded(asked);
    } catch (error) {
        if (!asked.any) {
            vscode.window.showErrorMessage(`${error.message}; \`make run\` records a run`);
            return undefined;
        }
    }
    const items = asked.any ? [{ label: "*", description: "any" }, ...known] : known;
    const options = { placeHolder: asked.description, matchOnDescription: true };
    const one = items.length === 1 ? items[0] : await vscode.window.showQuickPick(items, options);
    chosen[asked.what.split("-")[0]] = one && one.label !== "*" ? one.label : "";
    return one && one.label;
}

exports.activate = (context) => {
    context.subscriptions.push(
        vscode.debug.registerDebugAdapterDescriptorFactory("triton-gdb", earlyGdb),
        vscode.debug.onDidStartDebugSession(earlyGdb.started),
        vscode.debug.onDidTerminateDebugSession(earlyGdb.ended),
        vscode.debug.registerDebugAdapterTrackerFactory("triton-gdb", tracker),
        vscode.debug.registerDebugConfigurationProvider("triton-gdb", configuration),
        vscode.commands.registerCommand("triton-gdb.pick", pick),
        vscode.commands.registerCommand("triton-gdb.openReport", openReport),
        vscode.commands.registerCommand("triton-gdb.pickProcess", () =>
            vscode.window.showInputBox({ prompt: "Process to attach to; `tracing attach` lists them" }),
        ),
    );
};
