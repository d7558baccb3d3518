/* Has a second thread before main. */
#include <pthread.h>
#include <stddef.h>
#include <unistd.h>

static void *forever(void *nothing)
{
    for (;;)
        pause();
    return nothing;
}

__attribute__((constructor)) static void early(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, forever, NULL);
}

int main(void)
{
    return 5;
}
