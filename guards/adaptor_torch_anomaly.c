#include "guards/adaptor_torch_anomaly.h"
#include "guards/adaptor_torch.h"
#include <dlfcn.h>
#include <stdint.h>

/* Exported data of torch's: two static bool of its class AnomalyMode. */
static const volatile uint8_t *enabled, *check_nan;

int fg_torch_anomaly_read(void)
{
    static PyObject *name;
    if (enabled == NULL) {
        PyObject *loaded = PyImport_GetModuleDict(); /* borrowed from the interpreter */
        if (name == NULL && (name = PyUnicode_InternFromString("torch")) == NULL) {
            PyErr_Clear();
            return -1;
        }
        if (loaded == NULL || !PyDict_CheckExact(loaded) || PyDict_GetItemWithError(loaded, name) == NULL)
            return 0;
        void *cpu = dlopen("libtorch_cpu.so", RTLD_NOLOAD | RTLD_LAZY);
        check_nan = cpu != NULL ? dlsym(cpu, "_ZN5torch8autograd11AnomalyMode10_check_nanE") : NULL;
        if (check_nan == NULL || (enabled = dlsym(cpu, "_ZN5torch8autograd11AnomalyMode8_enabledE")) == NULL)
            return -1;
    }
    return *enabled ? FG_ANOMALY_ON | (*check_nan ? FG_ANOMALY_NAN : 0) : 0;
}
