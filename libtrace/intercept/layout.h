/* Addresses of abi.h that assembly needs, too. */
#ifndef TR_INTERCEPT_LAYOUT_H
#define TR_INTERCEPT_LAYOUT_H

#define TR_LAYOUT_CONTROL 0x70041000
#define TR_LAYOUT_STACK_TOP 0x70057000

#endif
