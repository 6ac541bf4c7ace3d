#!/bin/sh
# Asked for help, each script of the project prints the comment that it begins with, and does nothing.
set -eu
cd "$TAPESCOPE_SOURCE_DIR/scripts"
asked=0
for script in *; do
    grep -q '^\. .*/lib\.sh"$' "$script" || continue
    for option in -h --help; do
        printed=$(timeout 20 "./$script" $option)
        first=$(sed -n '2s/^# //p' "$script")
        if [ "$(echo "$printed" | head -n 1)" != "$first" ] ||
            ! echo "$printed" | grep -q "^  scripts/$script" || echo "$printed" | grep -q '^[#.]'; then
            echo "$script $option prints: $printed"
            exit 1
        fi
        asked=$((asked + 1))
    done
done
[ $asked -ge 20 ] || { echo "only $asked scripts were asked"; exit 1; }
echo "1 passed, 0 failed"
