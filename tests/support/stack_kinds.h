/* stack_kinds.h: stacks whose frames are of all kinds that compilers make, at random. */
#ifndef STACK_KINDS_H
#define STACK_KINDS_H

/* Goes at most `deep` calls down and partly up again, and calls `at_the_end` at every end: some
 * times from one stack, whose registers have other values. The numbers go on from walk to walk. */
void stack_kinds_walk(unsigned deep, void (*at_the_end)(void));

#endif
