/*
 * The test build that hurts, make HARD=1: growing arrays begin with room for one, whatever may run
 * in parallel does, fresh memory is full of NaN and freed memory of junk. A number that such a
 * build has otherwise says so where it stands: HARD(1, 256).
 */
#ifndef EDDY_TENSOR_HARD_H
#define EDDY_TENSOR_HARD_H

#ifdef EDDY_HARD
#define HARD(hard, usual) (hard)
#else
#define HARD(hard, usual) (usual)
#endif

#endif
