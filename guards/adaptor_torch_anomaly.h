/* Purpose:   torch's anomaly mode (torch.autograd.set_detect_anomaly), which a backward pass asks while it runs.
 * Model:     two bytes of torch's: whether the mode is on, and whether it looks for nan. Only entries of compilers of graphs have the condition: their
 *            backward pass was made in one of the states.
 * Invariants: reads memory only, once torch was seen.
 * Threading: the GIL is held. The mode belongs to the process.
 * Ownership: nothing is owned.
 */
#ifndef FG_GUARDS_ADAPTOR_TORCH_ANOMALY_H
#define FG_GUARDS_ADAPTOR_TORCH_ANOMALY_H

enum { FG_ANOMALY_ON = 1, FG_ANOMALY_NAN = 2 };

/* FG_ANOMALY_ bits, 0 while the mode is off or torch is not loaded; -1: cannot be told. */
int fg_torch_anomaly_read(void);

#endif
