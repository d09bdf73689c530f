/* Integer division rounded towards 0, for one type. A divisor of 0 was refused; the smallest
 * integer by -1, which has no quotient, is taken as a negation, which wraps. */

LOOP_HELPER NUMBER TYPED(truncatediv_of)(NUMBER a, NUMBER b)
{
    if (b == 0) return 0;
#if SIGNED
    if (b == (NUMBER)-1) return (NUMBER)(0 - (UNSIGNED)a);
#endif
    return (NUMBER)(a / b);
}

LOOP_HELPER NUMBER TYPED(truncatemod_of)(NUMBER a, NUMBER b)
{
    if (b == 0) return 0;
#if SIGNED
    if (b == (NUMBER)-1) return 0;
#endif
    return (NUMBER)(a % b);
}

#undef TYPE
