# lib.sh - shared by the scripts: packages, build, messages. Sourced, not run.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"

say() { printf '\n==> %s\n' "$*"; }
die() { printf 'error: %s\n' "$*" >&2; exit 1; }
wrong() { printf 'error: %s\n\n' "$*" >&2; usage >&2; exit 2; } # an argument; usage is the script's own

# Does anybody take connections on this port of 127.0.0.1?
in_use() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"
  elif command -v sudo >/dev/null; then sudo "$@"
  else die "need root or sudo to install packages: $*"
  fi
}

# Names from scripts/packages.txt that are not installed. Groups: "core" (build and run), "all" (core and test), "clients".
# Lines: name, or "# group: x"; behind a name, a command that makes it unnecessary.
missing_packages() {
  local name command
  awk -v want="$1" '/^# group:/ { group = $3; next } /^#/ || NF == 0 { next }
    group == want || (want == "all" && group != "clients") { print $1, $2 }' scripts/packages.txt |
    while read -r name command; do
      [ -n "$command" ] && command -v "$command" >/dev/null && continue
      dpkg-query -W -f='${db:Status-Status}' "$name" 2>/dev/null | grep -qx installed || echo "$name"
    done
}

# What is missing is not to be had: ends the script, but for the group clients, whose tests are then skipped.
install_packages() {
  local missing
  mapfile -t missing < <(missing_packages "$1")
  [ ${#missing[@]} = 0 ] && return 0
  local give_up=die
  [ "$1" = clients ] && give_up=say
  command -v apt-get >/dev/null || { $give_up "not a Debian system; install by hand: ${missing[*]}"; return 0; }
  say "installing packages: ${missing[*]}"
  as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq &&
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null ||
    $give_up "apt-get could not install: ${missing[*]}"
}

# build_release [with-tests]
build_release() {
  local tests=OFF
  [ "${1:-}" = with-tests ] && tests=ON
  # What a build folder was made for once, tests included, stays on: turning it off would only cost time.
  [ -f build/CMakeCache.txt ] && grep -q '^KAFKAD_TESTS:BOOL=ON' build/CMakeCache.txt && tests=ON
  # A folder made by hand keeps its generator: cmake refuses another one.
  local generator=(-G Ninja)
  [ -f build/CMakeCache.txt ] && generator=()
  say "building (build/); progress: tail -f $root/build.log"
  cmake -S . -B build "${generator[@]}" -DCMAKE_BUILD_TYPE=Release -DKAFKAD_TESTS=$tests >build.log 2>&1 ||
    { cat build.log; die "cmake could not configure"; }
  cmake --build build -j"$(nproc)" >>build.log 2>&1 || { tail -40 build.log; die "build failed (build.log)"; }
}
