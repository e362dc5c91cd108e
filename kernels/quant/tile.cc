#include "kernels/quant/tile.h"
