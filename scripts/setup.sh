# shellcheck shell=bash
# Shared by ./headgate and ./test: a Python environment in .venv and, for what starts Spark, Java.
# Sourced by scripts that have `set -euo pipefail` and know the checkout as ROOT.
#
#   HEADGATE_PYTHON=/path/to/python   the Python to make .venv with
#   HEADGATE_NO_APT=1                 install no system packages, only say which are missing

VENV=$ROOT/.venv
LOG=$ROOT/.setup.log

# Either one would make the environment's Python load modules or jars of another installation.
unset PYTHONHOME SPARK_HOME
# Spark's workers run `python3` from PATH unless told otherwise; they need the packages of .venv.
export PYSPARK_PYTHON=$VENV/bin/python PYSPARK_DRIVER_PYTHON=$VENV/bin/python
# A bare machine has no locale at all, and Java 17 then cannot name a file with an accent.
export LANG=${LANG:-C.UTF-8}

say() { printf 'headgate: %s\n' "$*" >&2; }

# fail WHAT REMEDY...
fail() {
    say "$1"
    printf '  %s\n' "${@:2}" >&2
    exit 1
}

show_log_and_fail() {
    tail -n 15 "$LOG" | sed 's/^/  | /' >&2
    fail "$1" "The whole output is in $LOG. To try again, run the same command."
}

# ---------------------------------------------------------------- system packages

as_root() { if [[ $EUID -eq 0 ]]; then "$@"; else sudo -n "$@"; fi; }

may_apt() {
    [[ -z ${HEADGATE_NO_APT:-} ]] && command -v apt-get && as_root true
} &>/dev/null

# Prints the first of the packages that the distribution has.
first_available() {
    local package
    for package; do
        # Not `apt-cache show`: it succeeds for a package that others only mention.
        if [[ $(LC_ALL=C apt-cache policy "$package" 2>/dev/null) == *"Candidate: "[!\(]* ]]; then
            echo "$package"
            return
        fi
    done
    return 1
}

# apt_install PACKAGE...: installs the first of them that the distribution has, if this user may.
apt_install() {
    may_apt || return 1
    # A fresh container has no package lists. Should the update fail, older lists may still do.
    as_root apt-get update -qq &>>"$LOG" || true
    local package started=$SECONDS
    package=$(first_available "$@") || return 1
    say "installing $package with apt-get (HEADGATE_NO_APT=1 forbids it)"
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=120 \
        install -y -qq --no-install-recommends "$package" &>>"$LOG" </dev/null ||
        show_log_and_fail "apt-get could not install $package"
    say "$package is there after $((SECONDS - started)) s"
}

# ---------------------------------------------------------------- Java

# Prints the home of the given `java` if it is 17 or newer. Java 8 calls itself 1.8, later ones 11, 17, 21.
java_home_of() {
    local properties version
    properties=$("$1" -XshowSettings:properties -version 2>&1) || return 1
    version=$(sed -n 's/^ *java\.specification\.version = //p' <<<"$properties")
    version=${version#1.}
    [[ $version =~ ^[0-9]+$ ]] && ((version >= 17)) && sed -n 's/^ *java\.home = //p' <<<"$properties"
}

find_java() {
    local java home
    # Of several installed ones we take the versions that Spark has been tested with for the longest time.
    for java in "${JAVA_HOME:-/none}/bin/java" "$(command -v java)" /usr/lib/jvm/*{17,21,}*/bin/java \
        /Library/Java/JavaVirtualMachines/*/Contents/Home/bin/java /{opt/homebrew,usr/local}/opt/openjdk*/bin/java; do
        if [[ -x $java ]] && home=$(java_home_of "$java"); then
            export JAVA_HOME=$home
            return
        fi
    done
    return 1
}

setup_java() {
    # From a checkout, Spark runs on this machine: by the loopback address it does not listen on the network, and starts
    # even where the machine's own name does not resolve. For a cluster, set SPARK_LOCAL_IP.
    export SPARK_LOCAL_IP=${SPARK_LOCAL_IP:-127.0.0.1}
    local packages=(openjdk-17-jre-headless openjdk-21-jre-headless openjdk-25-jre-headless)
    find_java && return
    apt_install "${packages[@]}" && find_java && return
    fail "Spark needs Java 17 or newer, and there is none in JAVA_HOME, on PATH or in /usr/lib/jvm. Install one:" \
        "Debian, Ubuntu:  sudo apt-get install $(first_available "${packages[@]}" || echo "${packages[0]}")" \
        "Fedora:          sudo dnf install java-21-openjdk-headless" \
        "macOS:           brew install openjdk@17"
}

# Only tests and benchmarks with a real Kafka need it, and without it they say so themselves.
setup_maven() {
    command -v mvn >/dev/null || apt_install maven || say "without Maven (mvn) there is no Kafka to test with"
}

# ---------------------------------------------------------------- Python

find_python() {
    local candidate candidates=(python3 python3.13 python3.12 python3.11)
    [[ -z ${HEADGATE_PYTHON:-} ]] || candidates=("$HEADGATE_PYTHON")
    for candidate in "${candidates[@]}"; do
        # Run it rather than look for it: a version manager may leave a stub that only prints an error.
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' &>/dev/null; then
            PYTHON=$candidate
            return
        fi
    done
    fail "Python 3.11 or newer is needed, and ${candidates[0]} is not. Install one, or name it in HEADGATE_PYTHON:" \
        "Debian 12, Ubuntu 24.04 and later:  sudo apt-get install python3 python3-venv" \
        "Ubuntu 22.04:                       sudo apt-get install python3.11 python3.11-venv" \
        "Fedora:                             sudo dnf install python3.12" \
        "macOS:                              brew install python@3.12"
}

# Debian and Ubuntu ship Python without the part that puts pip into a new environment.
ensure_venv_module() {
    local package
    "$PYTHON" -c 'import ensurepip' &>/dev/null && return
    package=$("$PYTHON" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')
    apt_install "$package" python3-venv ||
        fail "$PYTHON cannot make virtual environments. Install the missing part:" "sudo apt-get install $package"
}

# Only one setup of a checkout at a time. Python takes the lock because not every system has flock(1); the lock belongs
# to the open file 9 and so outlives that Python, until the file is closed or this script ends in whatever way.
lock_setup() {
    [[ -w $ROOT ]] || fail "$ROOT must be writable, the environment is made in it." "Clone it to a folder of your own."
    exec 9>"$ROOT/.venv.lock"
    "$PYTHON" - <<'PYTHON'
import fcntl
import sys

try:
    fcntl.flock(9, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    print("headgate: waiting for another setup of this checkout", file=sys.stderr)
    fcntl.flock(9, fcntl.LOCK_EX)
PYTHON
}

unlock_setup() { exec 9>&-; }

# Changes whenever the environment would have to: other pins, another Python, or the checkout was moved.
fingerprint() { { "$VENV/bin/python" -V && echo "$ROOT" && cat "$ROOT"/{requirements/*.txt,pyproject.toml}; } | cksum; }

same_python() { [[ $("$VENV/bin/python" -V) == "$("$1" -V)" ]]; }

# A stamp exists only while the last installation ran to its end. What ./test needs includes what ./headgate needs.
is_ready() {
    local now
    [[ -n $(compgen -G "$VENV/.stamp-*") ]] && now=$(fingerprint) || return 1
    [[ -z ${HEADGATE_PYTHON:-} ]] || same_python "$HEADGATE_PYTHON" || return 1
    grep -qsxF "$now" "$VENV/.stamp-$1" "$VENV/.stamp-dev"
} 2>/dev/null

# An environment without a stamp was interrupted half-way. pip takes a half-copied package for an installed one,
# so such an environment is thrown away; pip's cache spares the second download.
ensure_venv() {
    if [[ -e $VENV/pyvenv.cfg && ! -e $VENV/.made-by-headgate ]]; then
        fail "$VENV is there already, and was not made by this script." "Move it away or delete it."
    fi
    if [[ -n $(compgen -G "$VENV/.stamp-*") ]] && same_python "${HEADGATE_PYTHON:-$VENV/bin/python}" 2>/dev/null; then
        rm "$VENV"/.stamp-*
        return
    fi
    rm -rf "$VENV/pyvenv.cfg" "$VENV"
    mkdir "$VENV"
    touch "$VENV/.made-by-headgate"
    "$PYTHON" -m venv "$VENV" &>>"$LOG" || show_log_and_fail "$PYTHON could not make a virtual environment"
}

# Of all that pip says: the large downloads, the largest quarter by quarter, and the two slow steps after them.
show_progress() {
    local line file quarter shown=0 done_bytes all_bytes
    while IFS= read -r line; do
        case $line in
            *Downloading\ *[0-9][0-9].[0-9]" MB)"*)
                file=${line#*Downloading } shown=0
                say "  downloading ${file%%-[0-9]*} (${file##*(}"
                ;;
            Progress\ *)
                read -r _ done_bytes _ all_bytes <<<"$line"
                quarter=$((all_bytes > 100000000 ? 4 * done_bytes / all_bytes : 0))
                ((quarter <= shown)) || { shown=$quarter && say "    $((25 * quarter)) %"; }
                ;;
            *"Building wheel for pyspark"*": started"*) say "  building pyspark" ;;
            *"Installing collected packages"*pyspark*) say "  copying the packages into .venv" ;;
        esac
    done
}

pip_install() {
    # TMPDIR: building PySpark takes 1.5 GB, and /tmp may be a small part of the memory.
    mkdir -p "$VENV/tmp"
    TMPDIR=$VENV/tmp "$VENV/bin/python" -m pip --disable-pip-version-check --no-input --timeout 60 install "$@" \
        2>&1 </dev/null | tee -a "$LOG" | show_progress || show_log_and_fail "pip could not install what is needed"
    rm -rf "$VENV/tmp"
}

install_requirements() {
    local started=$SECONDS
    say "installing the pinned packages into .venv; PySpark alone is 450 MB"
    # The build tools come first and pinned too: PySpark is published as source only, everything else as wheels.
    pip_install --require-hashes --only-binary :all: -r "$ROOT/requirements/build.txt"
    pip_install --require-hashes --only-binary :all: --no-binary pyspark --no-build-isolation --progress-bar raw \
        -r "$ROOT/requirements/$1.txt"
    pip_install --no-index --no-deps --no-build-isolation --editable "$ROOT"
    say "the packages are there after $((SECONDS - started)) s"
}

# setup_python run|dev
setup_python() {
    is_ready "$1" && return
    find_python
    lock_setup
    if ! is_ready "$1"; then # another setup may have done it while we waited
        : >"$LOG"
        ensure_venv_module
        ensure_venv
        install_requirements "$1"
        fingerprint >"$VENV/.stamp-$1"
    fi
    unlock_setup
}
