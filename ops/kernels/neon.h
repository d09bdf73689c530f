/*
 * <arm_neon.h> without the functions on half vectors whose names are those of functions on whole
 * vectors here (vector_base.h). Include this in its place, before <sleef.h>, which includes it too.
 */
#ifndef EDDY_OPS_KERNELS_NEON_H
#define EDDY_OPS_KERNELS_NEON_H

#define vabs_f32  neon_vabs_f32
#define vabs_f64  neon_vabs_f64
#define vfma_f32  neon_vfma_f32
#define vfma_f64  neon_vfma_f64
#define vmax_f32  neon_vmax_f32
#define vmax_f64  neon_vmax_f64
#define vmin_f32  neon_vmin_f32
#define vmin_f64  neon_vmin_f64
#define vsqrt_f32 neon_vsqrt_f32
#define vsqrt_f64 neon_vsqrt_f64
#include <arm_neon.h>
#undef vabs_f32
#undef vabs_f64
#undef vfma_f32
#undef vfma_f64
#undef vmax_f32
#undef vmax_f64
#undef vmin_f32
#undef vmin_f64
#undef vsqrt_f32
#undef vsqrt_f64

#endif
