"""The part of oneDNN's C API, versions 3.x, that is used: types and functions for cffi, numbers of its enumerations.

Source: dnnl.h, dnnl_types.h, dnnl_common.h and dnnl_common_types.h of oneDNN 3.2; the major version is that of the
binary interface.
"""

MAJOR = 3
OPENMP = 2
"""The kind of threads whose number this code can set: DNNL_RUNTIME_OMP."""

CPU, DEFAULT_STREAM = 1, 1
ISA = {"portable": 0x1, "avx2": 0x7, "avx512": 0x27}
"""The library's number for an instruction set; its smallest is SSE 4.1."""
UNIMPLEMENTED = 3
INFERENCE = 96
USER_SCRATCHPAD = 1
ANY_LAYOUT = 1
MOST_DIMS = 12

F16, BF16, F32, S32, S8, U8 = range(1, 7)

CONVOLUTION_DIRECT, DECONVOLUTION_DIRECT = 1, 10
POOLING_MAX, POOLING_AVERAGE_ALL, POOLING_AVERAGE_INSIDE = 511, 767, 1023
SOFTMAX, LOG_SOFTMAX = 196608, 196609
RELU, LINEAR, SWISH, CLIP = 32, 38, 44, 46
ADD, MULTIPLY, MAXIMUM, MINIMUM, DIVIDE, SUBTRACT = range(131056, 131062)
LARGEST, SMALLEST = 196594, 196595
USE_SCALE, USE_SHIFT = 2, 4

IMPLEMENTATION = 8
WEIGHTS_LAYOUT, SCRATCHPAD_LAYOUT = 131, 136

SOURCE, SOURCE_1, TARGET, WEIGHTS, BIAS, SCALE, SHIFT, SCRATCHPAD = 1, 2, 17, 33, 41, 51, 52, 80
POST_OPERAND = 32768
"""Multiplied by the number of the post-operation plus one, plus SOURCE_1: the tensor that it reads."""

CDEF = """
typedef int64_t dnnl_dims_t[12];
typedef struct { int major; int minor; int patch; const char *hash; unsigned cpu_runtime; unsigned gpu_runtime; }
    dnnl_version_t;
typedef struct dnnl_engine *dnnl_engine_t;
typedef struct dnnl_stream *dnnl_stream_t;
typedef struct dnnl_memory_desc *dnnl_memory_desc_t;
typedef struct dnnl_memory *dnnl_memory_t;
typedef struct dnnl_primitive_desc *dnnl_primitive_desc_t;
typedef struct dnnl_primitive *dnnl_primitive_t;
typedef struct dnnl_primitive_attr *dnnl_primitive_attr_t;
typedef struct dnnl_post_ops *dnnl_post_ops_t;
typedef struct { int arg; dnnl_memory_t memory; } dnnl_exec_arg_t;

const dnnl_version_t *dnnl_version(void);
void omp_set_num_threads(int);

int dnnl_engine_create(dnnl_engine_t *, int, size_t);
int dnnl_engine_destroy(dnnl_engine_t);
int dnnl_stream_create(dnnl_stream_t *, dnnl_engine_t, unsigned);
int dnnl_stream_destroy(dnnl_stream_t);

int dnnl_memory_desc_create_with_strides(dnnl_memory_desc_t *, int, const dnnl_dims_t, int, const dnnl_dims_t);
int dnnl_memory_desc_create_with_tag(dnnl_memory_desc_t *, int, const dnnl_dims_t, int, int);
int dnnl_memory_desc_clone(dnnl_memory_desc_t *, dnnl_memory_desc_t);
int dnnl_memory_desc_destroy(dnnl_memory_desc_t);
int dnnl_memory_desc_equal(dnnl_memory_desc_t, dnnl_memory_desc_t);
size_t dnnl_memory_desc_get_size(dnnl_memory_desc_t);
int dnnl_memory_create(dnnl_memory_t *, dnnl_memory_desc_t, dnnl_engine_t, void *);
int dnnl_memory_destroy(dnnl_memory_t);

int dnnl_primitive_attr_create(dnnl_primitive_attr_t *);
int dnnl_primitive_attr_destroy(dnnl_primitive_attr_t);
int dnnl_primitive_attr_set_scratchpad_mode(dnnl_primitive_attr_t, int);
int dnnl_primitive_attr_set_post_ops(dnnl_primitive_attr_t, dnnl_post_ops_t);
int dnnl_post_ops_create(dnnl_post_ops_t *);
int dnnl_post_ops_destroy(dnnl_post_ops_t);
int dnnl_post_ops_append_sum(dnnl_post_ops_t, float, int32_t, int);
int dnnl_post_ops_append_eltwise(dnnl_post_ops_t, int, float, float);
int dnnl_post_ops_append_binary(dnnl_post_ops_t, int, dnnl_memory_desc_t);

int dnnl_primitive_desc_destroy(dnnl_primitive_desc_t);
int dnnl_primitive_desc_query(dnnl_primitive_desc_t, int, int, void *);
dnnl_memory_desc_t dnnl_primitive_desc_query_md(dnnl_primitive_desc_t, int, int);
int dnnl_primitive_create(dnnl_primitive_t *, dnnl_primitive_desc_t);
int dnnl_primitive_destroy(dnnl_primitive_t);
int dnnl_primitive_execute(dnnl_primitive_t, dnnl_stream_t, int, const dnnl_exec_arg_t *);
int dnnl_set_primitive_cache_capacity(int);
int dnnl_set_max_cpu_isa(int);

int dnnl_reorder_primitive_desc_create(dnnl_primitive_desc_t *, dnnl_memory_desc_t, dnnl_engine_t, dnnl_memory_desc_t,
    dnnl_engine_t, dnnl_primitive_attr_t);
int dnnl_convolution_forward_primitive_desc_create(dnnl_primitive_desc_t *, dnnl_engine_t, int, int,
    dnnl_memory_desc_t, dnnl_memory_desc_t, dnnl_memory_desc_t, dnnl_memory_desc_t, const dnnl_dims_t,
    const dnnl_dims_t, const dnnl_dims_t, const dnnl_dims_t, dnnl_primitive_attr_t);
int dnnl_deconvolution_forward_primitive_desc_create(dnnl_primitive_desc_t *, dnnl_engine_t, int, int,
    dnnl_memory_desc_t, dnnl_memory_desc_t, dnnl_memory_desc_t, dnnl_memory_desc_t, const dnnl_dims_t,
    const dnnl_dims_t, const dnnl_dims_t, const dnnl_dims_t, dnnl_primitive_attr_t);
int dnnl_matmul_primitive_desc_create(dnnl_primitive_desc_t *, dnnl_engine_t, dnnl_memory_desc_t, dnnl_memory_desc_t,
    dnnl_memory_desc_t, dnnl_memory_desc_t, dnnl_primitive_attr_t);
int dnnl_pooling_forward_primitive_desc_create(dnnl_primitive_desc_t *, dnnl_engine_t, int, int, dnnl_memory_desc_t,
    dnnl_memory_desc_t, const dnnl_dims_t, const dnnl_dims_t, const dnnl_dims_t, const dnnl_dims_t,
    const dnnl_dims_t, dnnl_primitive_attr_t);
int dnnl_softmax_forward_primitive_desc_create(dnnl_primitive_desc_t *, dnnl_engine_t, int, int, dnnl_memory_desc_t,
    dnnl_memory_desc_t, int, dnnl_primitive_attr_t);
int dnnl_layer_normalization_forward_primitive_desc_create(dnnl_primitive_desc_t *, dnnl_engine_t, int,
    dnnl_memory_desc_t, dnnl_memory_desc_t, dnnl_memory_desc_t, float, unsigned, dnnl_primitive_attr_t);
int dnnl_reduction_primitive_desc_create(dnnl_primitive_desc_t *, dnnl_engine_t, int, dnnl_memory_desc_t,
    dnnl_memory_desc_t, float, float, dnnl_primitive_attr_t);
int dnnl_binary_primitive_desc_create(dnnl_primitive_desc_t *, dnnl_engine_t, int, dnnl_memory_desc_t,
    dnnl_memory_desc_t, dnnl_memory_desc_t, dnnl_primitive_attr_t);
"""
