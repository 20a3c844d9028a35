# What `run` and `proof` share: where their tools are, and how they get them. Sourced from the workspace's folder.
# shellcheck shell=bash

exec </dev/null
# Nothing is built twice in a run, and what a second build would start from fills the disk of a small machine.
export CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=false
# Linting and building need a region but no account.
export AWS_DEFAULT_REGION=us-east-1 AWS_EC2_METADATA_DISABLED=true SAM_CLI_TELEMETRY=0

venv=$PWD/target/ci-venv
tools=$PWD/target/ci-tools
# cargo-lambda looks for Zig as a module of the first python3.
export PATH=$tools/bin:$venv/bin:$PATH

# Where tests find the Python client's library.
python_client=$PWD/target/ci-python-client
export MUSTER_PYTHON=$python_client/bin/python3

# A virtual environment at $1 with the requirements $2, which `.ci/lock-python` wrote.
install_python() {
  # Scripts in a virtual environment hold its absolute path, so that a moved checkout needs a new one.
  local wanted
  wanted=$(printf '%s\n' "$1" "$(python3 --version)" && cat "$2")
  if [[ ! -f $1/installed || $(<"$1/installed") != "$wanted" ]]; then
    rm -rf "$1"
    python3 -m venv "$1" &&
      "$1/bin/pip" install --quiet --no-input --disable-pip-version-check --require-hashes --requirement "$2" &&
      printf '%s\n' "$wanted" >"$1/installed"
  fi
}

install_python_client() {
  install_python "$python_client" .ci/python-client-requirements.txt
}

# Unoptimised they build sooner and are fast enough. Those that are there are left alone.
install_cargo_tools() {
  cargo install --quiet --locked --debug --root "$tools" "$@"
}

# The host's own architecture: a cross build would need another Rust target installed.
sam_build() {
  local architecture
  case $(uname -m) in
    x86_64) architecture=x86_64 ;;
    aarch64 | arm64) architecture=arm64 ;;
    *) echo "Lambda has no $(uname -m) functions" && return 1 ;;
  esac
  sam build "$@" --parameter-overrides "Architecture=$architecture"
}

# The sizes of the functions in the folders given, as built and as an archive.
print_sizes() {
  local folder binary
  for folder in "$@"; do
    binary=$folder/bootstrap
    python3 -m zipfile -c target/sam/function.zip "$binary"
    echo "$(basename "$folder"): $(wc -c <"$binary") bytes, $(wc -c <target/sam/function.zip) zipped"
  done
}

# Packages of Debian's; not on a user's own machine.
install_packages() {
  if [[ ${CI:-} == true ]] && ((EUID == 0)) && command -v apt-get >/dev/null; then
    mkdir -p target
    { apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install --no-install-recommends "$@" && apt-get clean; } \
      >target/ci-packages.log 2>&1 || tail -n 3 target/ci-packages.log
  fi
}
