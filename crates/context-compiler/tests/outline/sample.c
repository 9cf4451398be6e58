/*
 * Licence.
 */

#include <stdio.h>
#include "job.h"

#define LIMIT 1024
#define MAX(a, b) ((a) > (b) ? (a) : (b))

/* A job. */
struct job {
    const char *name; /* what it is called */
    struct job *next;
};

typedef enum { WAITING, DONE } state_t;

static const int table[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25};

int job_run(struct job *job, int flags);

// Runs it,
// and says how it went.
int job_run(struct job *job, int flags)
{
    printf("%s\n", job->name);
    return flags;
}

#ifdef DEBUG
static void *job_debug(void)
{
    return NULL;
}
#endif
