#!/bin/sh
# Put pgtap.sql and pg_prove below $1 without installing anything.
#
# Both come from Debian's packages, downloaded and unpacked (no root needed). Elsewhere, or to use other copies, set
# PGTAP_SQL to a pgtap.sql and PG_PROVE to a pg_prove program; either replaces its download.
set -eu
target=$1
mkdir -p "$target/work"
target=$(cd "$target" && pwd)

fail() {
    echo "$1" >&2
    echo "Either install pgTAP and pg_prove by hand and name them," >&2
    echo "  PGTAP_SQL=/path/to/pgtap.sql PG_PROVE=/path/to/pg_prove make tap" >&2
    echo "or run on Debian or Ubuntu, where they are downloaded (postgresql-NN-pgtap, libtap-parser-sourcehandler-pgtap-perl)." >&2
    exit 1
}

# An ordinary user may not refresh the system's package lists, so a private set is kept below the target.
apt_private() {
    state=$target/work/apt
    mkdir -p "$state/lists/partial" "$state/cache/archives/partial"
    command=$1
    shift
    "$command" -q -o "Dir::State::lists=$state/lists" -o "Dir::Cache=$state/cache" -o APT::Sandbox::User=root "$@"
}

pgtap_package() {
    # the newest postgresql-NN-pgtap that the lists know
    "$@" pkgnames postgresql- 2>/dev/null | grep -E '^postgresql-[0-9]+-pgtap$' | sort -t- -k2,2n | tail -n 1
}

private=
download() {
    echo "Downloading $1" >&2
    if [ -z "$private" ]; then
        (cd "$target/work" && apt-get -q -o APT::Sandbox::User=root download "$1" >/dev/null) || return 1
    else
        (cd "$target/work" && apt_private apt-get download "$1" >/dev/null) || return 1
    fi
}

unpack() {
    # $1: package name
    rm -f "$target/work/$1"_*.deb
    download "$1" || return 1
    dpkg -x "$target/work/$1"_*.deb "$target/deb"
}

prepare_lists() {
    if [ -n "$(pgtap_package apt-cache)" ] && [ "${1:-}" != refresh ]; then
        return 0
    fi
    echo "Fetching package lists" >&2
    apt_private apt-get update >/dev/null || fail "apt-get could not fetch its package lists."
    private=yes
}

need_sql=yes
need_prove=yes
if [ -n "${PGTAP_SQL:-}" ]; then
    [ -r "$PGTAP_SQL" ] || fail "PGTAP_SQL names $PGTAP_SQL, which cannot be read."
    cp "$PGTAP_SQL" "$target/pgtap.sql"
    need_sql=
fi
if [ -n "${PG_PROVE:-}" ] || command -v pg_prove >/dev/null 2>&1; then
    need_prove=
fi

if [ -n "$need_sql$need_prove" ]; then
    for tool in apt-get apt-cache dpkg; do
        command -v "$tool" >/dev/null 2>&1 || fail "pgTAP is needed and $tool is not there to fetch it."
    done
    rm -rf "$target/deb"
    fetch_all() {
        if [ -n "$need_sql" ]; then
            if [ -n "$private" ]; then package=$(pgtap_package apt_private apt-cache); else package=$(pgtap_package apt-cache); fi
            [ -n "$package" ] || return 1
            unpack "$package" || return 1
            set -- "$target"/deb/usr/share/postgresql/*/extension
            # pgtap.sql may be present as pgtap--VERSION.sql only
            sql=$(ls "$1"/pgtap.sql 2>/dev/null || ls "$1"/pgtap--[0-9]*.sql 2>/dev/null | grep -v -- '--.*--' | tail -n 1)
            [ -n "$sql" ] || return 1
            cp "$sql" "$target/pgtap.sql"
        fi
        if [ -n "$need_prove" ]; then
            unpack libtap-parser-sourcehandler-pgtap-perl || return 1
        fi
    }
    prepare_lists
    if ! fetch_all; then
        # a list that is older than the mirror names files that are gone
        [ -z "$private" ] || fail "pgTAP could not be downloaded."
        prepare_lists refresh
        fetch_all || fail "pgTAP could not be downloaded."
    fi
fi

cat >"$target/pg_prove" <<WRAPPER
#!/bin/sh
root=\$(cd "\$(dirname "\$0")" && pwd)
if [ -n "\${PG_PROVE:-}" ]; then exec "\$PG_PROVE" "\$@"; fi
if [ -x "\$root/deb/usr/bin/pg_prove" ]; then exec perl -I "\$root/deb/usr/share/perl5" "\$root/deb/usr/bin/pg_prove" "\$@"; fi
exec pg_prove "\$@"
WRAPPER
chmod +x "$target/pg_prove"

if [ -n "$need_prove" ] && ! perl -MTAP::Harness -MTAP::Parser -e 1 2>/dev/null; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        echo "Installing perl (pg_prove needs its TAP::Harness)" >&2
        DEBIAN_FRONTEND=noninteractive apt-get -q -y install --no-install-recommends perl >/dev/null ||
            fail "pg_prove needs Perl with TAP::Harness, and the package perl could not be installed."
    else
        fail "pg_prove needs Perl with TAP::Harness: install the package perl."
    fi
fi
"$target/pg_prove" --version >/dev/null 2>&1 || fail "pg_prove does not start: $("$target/pg_prove" --version 2>&1 | head -n 1)"
rm -rf "$target/work"
