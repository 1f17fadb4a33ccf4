// ProcessPrng of Windows 10 for a Wine that has no bcryptprimitives.dll. Only tests use this library; no package has it.
#include <stddef.h>

unsigned char __stdcall SystemFunction036(void *data, unsigned long size); // RtlGenRandom

__declspec(dllexport) int __stdcall ProcessPrng(unsigned char *data, size_t size) {
  return SystemFunction036(data, (unsigned long)size);
}
