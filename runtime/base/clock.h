/* Purpose:   seconds on a clock that nobody sets, for limits and for the time that a compile took.
 * Model:     only differences mean anything.
 * Threading: any thread.
 */
#ifndef FG_BASE_CLOCK_H
#define FG_BASE_CLOCK_H

double fg_seconds(void);

#endif
