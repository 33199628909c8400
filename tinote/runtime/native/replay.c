// Runs a captured step again: a list of instructions over launch blocks, memory and registers, as one kernel.
//
//   tn_replay(block) -> status
//       slot 0: where the instructions are; slot 1: where the registers are; slot 2 becomes the number of the end that
//       was reached. What fails is reported with the word at which its instruction begins as the site.
//
// An instruction is an operation and its operands, a word each; addresses are absolute. Registers hold f64 or i64. Each
// kernel of the list has a launch block of its own, which the list fills in; to its generated code a launch from here is
// as any other. Arithmetic is Python's: what Python would raise an exception for, and integers past 64 bits, are faults.
//
// A view is `address, rank, (extent, bytes from one to the next) for each dimension, the outermost first`.

#include "runtime.h"

#include <math.h>
#include <string.h>

union number {
    double real;
    int64_t integer;
};

enum { OK = STATUS_OK };

static int32_t launch_within(struct block *outer, struct block *block, struct lane *lane) {
    struct header *around = header_of(outer), *header = header_of(block);
#ifdef __wasm__
    (void)lane;
    bool has_python = true;
#else
    if (lane->block != NULL) {
        int32_t status = stop_of_member(lane);
        if (status != OK) return status;
    }
    // Of several threads that run members, the one that launched them all has Python's state.
    bool has_python = this_thread() == around->thread;
#endif
    begin_launch(block, around->thread, outer->flags);
    header->lane = lane->block == NULL ? NULL : lane;
    if (has_python) header->thread_state = around->thread_state;
    int32_t returned = end_launch(block, header->entry(block));
#ifndef __wasm__
    if (has_python && has_printed(block)) {
        int32_t status = show_prints(block);
        if (returned == OK) returned = status;
    }
#endif
    if (has_python) {
        around->thread_state = header->thread_state;
        around->python_error |= header->python_error;
    }
    header->lane = NULL;
    return returned;
}

// --- numbers in memory

static double real_of_half(uint16_t half) {
    uint64_t exponent = half >> 10 & 31, fraction = half & 0x3ff;
    union {
        double number;
        uint64_t bits;
    } found = {0x1p-24 * (double)fraction}; // a subnormal half counts units of 2^-24
    if (exponent == 31)
        found.bits = (uint64_t)0x7ff << 52 | fraction << 42;
    else if (exponent != 0)
        found.bits = (exponent + 1023 - 15) << 52 | fraction << 42;
    return half & 0x8000 ? -found.number : found.number;
}

static uint16_t half_of_real(double value) {
    half_value rounded = __truncdfhf2(value);
    uint16_t bits;
    memcpy(&bits, &rounded, sizeof bits);
    return bits;
}

static int32_t load(int64_t type, const void *at, union number *found) {
    switch (type) {
    case TYPE_F16: {
        uint16_t bits;
        memcpy(&bits, at, 2);
        found->real = real_of_half(bits);
        return OK;
    }
    case TYPE_F32: found->real = (double)*(const float *)at; return OK;
    case TYPE_F64: found->real = *(const double *)at; return OK;
    case TYPE_I8: found->integer = *(const int8_t *)at; return OK;
    case TYPE_I16: found->integer = *(const int16_t *)at; return OK;
    case TYPE_I32: found->integer = *(const int32_t *)at; return OK;
    case TYPE_I64: found->integer = *(const int64_t *)at; return OK;
    case TYPE_U1: found->integer = *(const uint8_t *)at != 0; return OK;
    case TYPE_U8: found->integer = *(const uint8_t *)at; return OK;
    case TYPE_U16: found->integer = *(const uint16_t *)at; return OK;
    case TYPE_U32: found->integer = *(const uint32_t *)at; return OK;
    default: found->integer = *(const int64_t *)at; return found->integer < 0 ? STATUS_OVERFLOW : OK;
    }
}

static bool is_float(int64_t type) {
    return type == TYPE_F16 || type == TYPE_F32 || type == TYPE_F64;
}

// A finite number that the type does not hold is a fault, as it is in Python.
static int32_t store_real(int64_t type, void *at, double value) {
    if (type == TYPE_F64) {
        *(double *)at = value;
        return OK;
    }
    if (type == TYPE_F32) {
        float rounded = (float)value;
        *(float *)at = rounded;
        return __builtin_isinf(rounded) && !__builtin_isinf(value) ? STATUS_OVERFLOW : OK;
    }
    uint16_t bits = half_of_real(value);
    memcpy(at, &bits, 2);
    return (bits & 0x7fff) == 0x7c00 && !__builtin_isinf(value) ? STATUS_OVERFLOW : OK;
}

#define INTEGERS(type, low, high)                                                                                      \
    if (value < (low) || value > (high)) return STATUS_OVERFLOW;                                                       \
    *(type *)at = (type)value;                                                                                         \
    return OK

static int32_t store_integer(int64_t type, void *at, int64_t value) {
    switch (type) {
    case TYPE_I8: INTEGERS(int8_t, INT8_MIN, INT8_MAX);
    case TYPE_I16: INTEGERS(int16_t, INT16_MIN, INT16_MAX);
    case TYPE_I32: INTEGERS(int32_t, INT32_MIN, INT32_MAX);
    case TYPE_I64: *(int64_t *)at = value; return OK;
    case TYPE_U1: *(uint8_t *)at = value != 0; return OK;
    case TYPE_U8: INTEGERS(uint8_t, 0, UINT8_MAX);
    case TYPE_U16: INTEGERS(uint16_t, 0, UINT16_MAX);
    case TYPE_U32: INTEGERS(uint32_t, 0, UINT32_MAX);
    default: INTEGERS(int64_t, 0, INT64_MAX);
    }
}

static int32_t store(int64_t type, void *at, int64_t is_real, union number number) {
    if (is_float(type)) return store_real(type, at, is_real ? number.real : (double)number.integer);
    if (is_real) return STATUS_OVERFLOW;
    return store_integer(type, at, number.integer);
}

// --- views

static int64_t size_of(int64_t type) {
    static const int8_t sizes[] = {2, 4, 8, 1, 2, 4, 8, 1, 1, 2, 4, 8};
    return sizes[type];
}

static void fill(char *at, int64_t rank, const int64_t *axes, const void *bits, int64_t size) {
    if (rank == 0) {
        memcpy(at, bits, (size_t)size);
        return;
    }
    for (int64_t i = 0; i < axes[0]; i++, at += axes[1]) fill(at, rank - 1, axes + 2, bits, size);
}

// Copies runs of `size` bytes between two views of the same extents.
static void copy(char *to, const char *from, int64_t rank, const int64_t *axes, int64_t size) {
    if (rank == 0) {
        memmove(to, from, (size_t)size);
        return;
    }
    for (int64_t i = 0; i < axes[0]; i++, to += axes[1], from += axes[2]) copy(to, from, rank - 1, axes + 3, size);
}

// Converts the floats of a view, rounding where the type is narrower.
static void convert(int64_t to_type, char *to, int64_t from_type, const char *from, int64_t rank,
                    const int64_t *axes) {
    if (rank == 0) {
        union number number;
        load(from_type, from, &number);
        store_real(to_type, to, number.real);
        return;
    }
    for (int64_t i = 0; i < axes[0]; i++, to += axes[1], from += axes[2])
        convert(to_type, to, from_type, from, rank - 1, axes + 3);
}

// --- arithmetic

static int32_t divide_reals(double a, double b, double *quotient, double *remainder) {
    if (b == 0) return STATUS_DIVISION;
    double rest = fmod(a, b), whole = (a - rest) / b;
    if (rest != 0) {
        if ((b < 0) != (rest < 0)) {
            rest += b;
            whole -= 1;
        }
    } else {
        rest = copysign(0.0, b);
    }
    if (whole != 0) {
        double lower = floor(whole);
        *quotient = whole - lower > 0.5 ? lower + 1 : lower;
    } else {
        *quotient = copysign(0.0, a / b);
    }
    *remainder = rest;
    return OK;
}

static int32_t power(double a, double b, double *found) {
    if (a == 0 && b < 0 && __builtin_isfinite(b)) return STATUS_DIVISION;
    if (a < 0 && __builtin_isfinite(a) && __builtin_isfinite(b) && floor(b) != b) return STATUS_OVERFLOW; // Python's is complex
    *found = pow(a, b);
    return __builtin_isinf(*found) && __builtin_isfinite(a) && __builtin_isfinite(b) ? STATUS_OVERFLOW : OK;
}

// A slope times a derivative: nothing where that is zero, whatever the slope.
static inline double scaled(double a, double b) {
    return b != 0 ? a * b : b;
}

static int32_t compute_reals(int64_t operation, double a, double b, union number *found) {
    double other;
    switch (operation) {
    case REPLAY_ADD: found->real = a + b; return OK;
    case REPLAY_SUBTRACT: found->real = a - b; return OK;
    case REPLAY_MULTIPLY: found->real = a * b; return OK;
    case REPLAY_TRUE_DIVIDE: found->real = a / b; return b == 0 ? STATUS_DIVISION : OK;
    case REPLAY_DIVIDE: found->real = a / b; return OK;
    case REPLAY_FLOOR_DIVIDE: return divide_reals(a, b, &found->real, &other);
    case REPLAY_REMAINDER: return divide_reals(a, b, &other, &found->real);
    case REPLAY_FLOAT_POWER: return power(a, b, &found->real);
    case REPLAY_NEGATIVE: found->real = -a; return OK;
    case REPLAY_ABSOLUTE: found->real = fabs(a); return OK;
    case REPLAY_SQRT: found->real = sqrt(a); return OK;
    case REPLAY_SCALE: found->real = scaled(a, b); return OK;
    case REPLAY_LT: found->integer = a < b; return OK;
    case REPLAY_LE: found->integer = a <= b; return OK;
    case REPLAY_GT: found->integer = a > b; return OK;
    case REPLAY_GE: found->integer = a >= b; return OK;
    case REPLAY_EQ: found->integer = a == b; return OK;
    default: found->integer = a != b; return OK;
    }
}

#define EXACT (INT64_C(1) << 53) // up to here every integer is an f64

static bool is_exact(int64_t a) {
    return a >= -EXACT && a <= EXACT;
}

static int32_t compute_integers(int64_t operation, int64_t a, int64_t b, union number *found) {
    int64_t *result = &found->integer;
    switch (operation) {
    case REPLAY_ADD: return __builtin_add_overflow(a, b, result) ? STATUS_OVERFLOW : OK;
    case REPLAY_SUBTRACT: return __builtin_sub_overflow(a, b, result) ? STATUS_OVERFLOW : OK;
    case REPLAY_MULTIPLY: return __builtin_mul_overflow(a, b, result) ? STATUS_OVERFLOW : OK;
    case REPLAY_TRUE_DIVIDE:
        if (b == 0) return STATUS_DIVISION;
        found->real = (double)a / (double)b;
        return is_exact(a) && is_exact(b) ? OK : STATUS_OVERFLOW;
    case REPLAY_FLOOR_DIVIDE:
    case REPLAY_REMAINDER: {
        if (b == 0) return STATUS_DIVISION;
        if (a == INT64_MIN && b == -1) return STATUS_OVERFLOW;
        int64_t quotient = a / b, rest = a % b;
        if (rest != 0 && (rest < 0) != (b < 0)) {
            rest += b;
            quotient -= 1;
        }
        *result = operation == REPLAY_REMAINDER ? rest : quotient;
        return OK;
    }
    case REPLAY_NEGATIVE: return __builtin_sub_overflow(0, a, result) ? STATUS_OVERFLOW : OK;
    case REPLAY_ABSOLUTE: return a < 0 ? compute_integers(REPLAY_NEGATIVE, a, 0, found) : (*result = a, OK);
    case REPLAY_LT: *result = a < b; return OK;
    case REPLAY_LE: *result = a <= b; return OK;
    case REPLAY_GT: *result = a > b; return OK;
    case REPLAY_GE: *result = a >= b; return OK;
    case REPLAY_EQ: *result = a == b; return OK;
    case REPLAY_NE: *result = a != b; return OK;
    default: return STATUS_OVERFLOW;
    }
}

// --- the list

#define ADDRESS(word) ((void *)(uintptr_t)(word))

static int32_t run_lane(struct block *block, struct lane *lane) {
    const int64_t *const first = lane->code, *at = first;
    union number *const registers = lane->registers;
    for (;;) {
        int32_t status = OK;
        const int64_t *next;
        switch (at[0]) {
        case REPLAY_END: lane->end = at[1]; return OK;
        case REPLAY_LAUNCH:
            status = tn_poll(block, (int32_t)(at - first));
            if (status == OK) status = launch_within(block, ADDRESS(at[1]), lane);
            next = at + 2;
            break;
        case REPLAY_CLEAR:
            memset(ADDRESS(at[1]), 0, (size_t)at[2]);
            next = at + 3;
            break;
        case REPLAY_COPY: // bytes of a run, to, from, rank, (extent, stride of `to`, stride of `from`)…
            copy(ADDRESS(at[2]), ADDRESS(at[3]), at[4], at + 5, at[1]);
            next = at + 5 + 3 * at[4];
            break;
        case REPLAY_CONVERT: // type, to, type, from, rank, (extent, stride of `to`, stride of `from`)…
            convert(at[1], ADDRESS(at[2]), at[3], ADDRESS(at[4]), at[5], at + 6);
            next = at + 6 + 3 * at[5];
            break;
        case REPLAY_TAKE: // bytes, to, where it is said from where, bytes from one member to the next
            memcpy(ADDRESS(at[2]), (const char *)ADDRESS(*(const int64_t *)ADDRESS(at[3])) + lane->member * at[4],
                   (size_t)at[1]);
            next = at + 5;
            break;
        case REPLAY_GIVE: // bytes, from, where it is said to where, bytes from one member to the next
            memcpy((char *)ADDRESS(*(const int64_t *)ADDRESS(at[3])) + lane->member * at[4], ADDRESS(at[2]),
                   (size_t)at[1]);
            next = at + 5;
            break;
        case REPLAY_FILL: { // type, register, whether it is real, a view
            union number bits = {.integer = 0};
            status = store(at[1], &bits, at[3], registers[at[2]]);
            if (status == OK) fill(ADDRESS(at[4]), at[5], at + 6, &bits, size_of(at[1]));
            next = at + 6 + 2 * at[5];
            break;
        }
        case REPLAY_MOVES: { // how many words, (to, from)…
            const int64_t *move = at + 2;
            for (int64_t i = 0; i < at[1]; i++, move += 2) *(int64_t *)ADDRESS(move[0]) = *(const int64_t *)ADDRESS(move[1]);
            next = move;
            break;
        }
        case REPLAY_STORE: // type, register, whether it is real, address
            status = store(at[1], ADDRESS(at[4]), at[3], registers[at[2]]);
            next = at + 5;
            break;
        case REPLAY_LOAD: // type, register, address
            status = load(at[1], ADDRESS(at[3]), &registers[at[2]]);
            next = at + 4;
            break;
        case REPLAY_SEED: // register, that of the number of launches so far, what seeds begin with
            registers[at[2]].integer += 1;
            registers[at[1]].integer = (int64_t)((uint64_t)at[3] + (uint64_t)registers[at[2]].integer);
            next = at + 4;
            break;
        case REPLAY_REAL: // register, from an integer
            registers[at[1]].real = (double)registers[at[2]].integer;
            next = at + 3;
            break;
        case REPLAY_EXACT: // the same, where only what is exact will do
            registers[at[1]].real = (double)registers[at[2]].integer;
            status = is_exact(registers[at[2]].integer) ? OK : STATUS_OVERFLOW;
            next = at + 3;
            break;
        case REPLAY_REALS: // operation, register, two operands
            status = compute_reals(at[1], registers[at[3]].real, registers[at[4]].real, &registers[at[2]]);
            next = at + 5;
            break;
#define REALS(found)                                                                                                   \
    {                                                                                                                  \
        double a = registers[at[2]].real, b = registers[at[3]].real;                                                   \
        registers[at[1]].real = (found);                                                                               \
        next = at + 4;                                                                                                 \
        break;                                                                                                         \
    }
        case REPLAY_ADD_REALS: REALS(a + b) // what cannot fail, and is most of what derivatives compute
        case REPLAY_SUBTRACT_REALS: REALS(a - b)
        case REPLAY_MULTIPLY_REALS: REALS(a * b)
        case REPLAY_SCALE_REALS: REALS(scaled(a, b))
        case REPLAY_SELECT: // register, condition, two operands
            registers[at[1]] = registers[at[registers[at[2]].integer != 0 ? 3 : 4]];
            next = at + 5;
            break;
        case REPLAY_CALL: // function
            status = ((int32_t(*)(void))ADDRESS(at[1]))();
            next = at + 2;
            break;
        case REPLAY_INTEGERS:
            status = compute_integers(at[1], registers[at[3]].integer, registers[at[4]].integer, &registers[at[2]]);
            next = at + 5;
            break;
        default: // REPLAY_BRANCH: register, where it goes on if that is zero
            next = registers[at[1]].integer != 0 ? at + 3 : first + at[2];
            break;
        }
        if (status != OK) {
            lane->site = (int32_t)(at - first);
            return status;
        }
        at = next;
    }
}

int32_t tn_replay(struct block *block) {
    struct lane lane = {.code = ADDRESS(block->slots[0]), .registers = ADDRESS(block->slots[1])};
    int32_t status = run_lane(block, &lane);
    if (status != OK) return tn_fail(block, status, lane.site, 0, NULL);
    block->slots[2] = lane.end;
    return OK;
}
