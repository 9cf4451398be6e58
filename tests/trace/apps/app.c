#include <math.h>
#include <stdio.h>
volatile double sink;
__attribute__((noinline)) double burn_the_processor(int n) {
  double sum = 0;
  for (int i = 0; i < n; i++) sum += sqrt(i * 1.5);
  return sum;
}
__attribute__((noinline)) double burn_less(int n) {
  double sum = 0;
  for (int i = 0; i < n; i++) sum += sqrt(i * 0.5);
  return sum;
}
__attribute__((noinline)) double work(void) {
  double sum = burn_the_processor(900000);
  return sum + burn_less(100000) + 1;
}
int main(void) {
  puts("ready 0");
  fflush(stdout);
  for (;;) sink = work() + 1;
}
