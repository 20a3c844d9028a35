// Runs a program of the package that npm has installed for this platform.
const { spawn } = require("node:child_process");

module.exports = (program) => {
  const platform = `${process.platform}-${process.arch}`;
  let path;
  try {
    path = require.resolve(`muster-local-${platform}/bin/${program}`);
  } catch {
    console.error(`${program}: there is none for ${platform}, or npm left out optional dependencies`);
    process.exit(1);
  }
  const child = spawn(path, process.argv.slice(2), { stdio: "inherit" });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
    process.on(signal, () => child.kill(signal));
  }
  child.on("error", (error) => {
    console.error(`${program}: ${error.message}`);
    process.exit(1);
  });
  child.on("exit", (code) => process.exit(code ?? 1));
};
