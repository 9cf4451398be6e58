#include <stdio.h>
#include <unistd.h>
/* Waits, and dies of any signal. */
int main(void) {
    puts("ready");
    fflush(stdout);
    for (;;) pause();
}
