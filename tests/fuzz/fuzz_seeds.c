/* fuzz_seeds.c: writes the seed profiles into a folder, one file each: fuzz_seeds FOLDER. */
#include "profile_seeds.h"

#include <stdio.h>

int main(int argc, char **argv)
{
    static struct maker_bytes seed;
    if (argc != 2) {
        fprintf(stderr, "usage: fuzz_seeds FOLDER\n");
        return 2;
    }
    for (unsigned i = 0; i < PROFILE_SEEDS; i++) {
        char path[4096];
        profile_seed_make(i, &seed);
        int length = snprintf(path, sizeof path, "%s/seed-%u.prof", argv[1], i);
        FILE *file = length < (int)sizeof path ? fopen(path, "w") : NULL;
        if (!file || fwrite(seed.data, 1, seed.n, file) != seed.n || fclose(file) != 0) {
            perror(path);
            return 1;
        }
    }
    return 0;
}
