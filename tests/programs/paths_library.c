/* paths_library.c: a library that calls back. NAME: of its function; ROOM: bytes of its frame. */
#include <tapescope/ad.h>

ad_tensor NAME(ad_tensor (*op)(ad_tensor), ad_tensor x);

ad_tensor NAME(ad_tensor (*op)(ad_tensor), ad_tensor x)
{
    volatile char room[ROOM];
    room[0] = 1;
    x = op(x);
    room[ROOM - 1] = room[0];
    return x;
}
