// gdb's own debug adapter in VSCode: `gdb -i dap`, with the commands of the configuration run first.
const vscode = require("vscode");

const adapter = {
    createDebugAdapterDescriptor(session) {
        const { gdb, commands } = session.configuration;
        const words = ["-nx", "-q", ...(commands || []).flatMap((line) => ["-iex", line]), "-i", "dap"];
        return new vscode.DebugAdapterExecutable(gdb || "gdb", words);
    },
};

// gdb stops a process that it attaches to. The pass is further on, so the process goes on at once.
const tracker = {
    createDebugAdapterTracker(session) {
        return {
            onDidSendMessage(message) {
                if (message.event === "stopped" && message.body.reason === "attach") {
                    session.customRequest("continue", { threadId: message.body.threadId || 1 });
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

exports.activate = (context) => {
    context.subscriptions.push(
        vscode.debug.registerDebugAdapterDescriptorFactory("triton-gdb", adapter),
        vscode.debug.registerDebugAdapterTrackerFactory("triton-gdb", tracker),
        vscode.debug.registerDebugConfigurationProvider("triton-gdb", configuration),
        vscode.commands.registerCommand("triton-gdb.pickProcess", () =>
            vscode.window.showInputBox({ prompt: "Process to attach to; `tracing attach` lists them" }),
        ),
    );
};
