/* Removes ddfuzz's variables from the environment of a target. */
#ifndef DDFUZZ_ENVIRONMENT_H
#define DDFUZZ_ENVIRONMENT_H

/* The first variable that the launcher adds to the environment of a program with the runtime; all
 * that stand after it are the launcher's, too. */
#define FIRST_OWN_VARIABLE "DDFUZZ_PID"

/* Removes the launcher's variables, also from /proc/self/environ and from the memory that the
 * kernel has filled with them: the target and its children must not see them, nor become servers. */
void environment_forget(void);

#endif
