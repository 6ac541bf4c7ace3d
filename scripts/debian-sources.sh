# shellcheck shell=bash
# Source packages of Debian, for scripts that show what Tapescope makes of code of others. Who reads
# it sets `dir`, an absolute path, where what was fetched stays.
# shellcheck disable=SC2154

# The package lists of this system's own archives, with their sources.
archives() {
    local list=$dir/sources.list file
    mkdir -p "$dir/lists/partial" "$dir/cache/archives/partial" "$dir/none"
    : >"$list"
    for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
        if [[ -f $file ]]; then sed -n 's/^deb /deb-src /p' "$file" >>"$list"; fi
    done
    for file in /etc/apt/sources.list.d/*.sources; do
        if [[ -f $file ]]; then
            sed 's/^Types:.*/Types: deb-src/' "$file" >"$dir/${file##*/}"
        fi
    done
    apt=(apt-get -o "Dir::Etc::SourceList=$list" -o "Dir::Etc::SourceParts=$dir"
        -o "Dir::State::Lists=$dir/lists" -o "Dir::Cache=$dir/cache")
    "${apt[@]}" update >"$dir/update.log" 2>&1 || { tail -n 5 "$dir/update.log"; return 1; }
}

# source_of PACKAGE: fetches it if it is not there and goes to its folder, made anew.
source_of() {
    cd "$dir" || return
    compgen -G "$1_*.orig.tar.*" >/dev/null ||
        "${apt[@]}" source --download-only --tar-only "$1" >"$1.log" 2>&1 || { tail -n 5 "$1.log"; return 1; }
    rm -rf "$1"
    mkdir "$1"
    tar -x --strip-components=1 -C "$1" -f "$(compgen -G "$1_*.orig.tar.*" | head -n 1)"
    cd "$1" || return
}
