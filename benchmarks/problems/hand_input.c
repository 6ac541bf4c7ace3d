/* hand_input.c: a model of a hand, made by a formula or read from the ADBench suite's files.
 *
 * Invariant: a vertex's bones are the model's.
 */
#include "hand.h"
#include "problem_input.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool allocate(struct problem *problem, int n_vertices, int n_points)
{
    if (n_vertices <= 0 || n_points <= 0)
        return false;
    struct hand *h = calloc(1, sizeof *h);
    problem->input = h;
    if (!h)
        return false;
    h->n_vertices = n_vertices;
    h->n_points = n_points;
    problem->n_variables = problem->n_gradient = HAND_THETA;
    problem->n_outputs = 1;
    problem->work_bytes = hand_work_bytes(h);
    problem->x = malloc(HAND_THETA * sizeof *problem->x);
    h->vertex = calloc((size_t)n_vertices, sizeof *h->vertex);
    h->vertex_of = malloc((size_t)n_points * sizeof *h->vertex_of);
    h->points = malloc((size_t)n_points * 3 * sizeof *h->points);
    return problem->x && h->vertex && h->vertex_of && h->points;
}

void hand_drop(void *input)
{
    struct hand *h = input;
    free(h->vertex);
    free(h->vertex_of);
    free(h->points);
    free(h);
}

/* ---- by a formula ---- */

/* A rotation by the numbers of a quaternion, and a shift. */
static struct hand_matrix rigid(struct numbers *numbers, double turn, double length)
{
    double q[4], norm = 0.0;
    q[0] = 1.0;
    for (int i = 1; i < 4; ++i)
        q[i] = number_in(numbers, -turn, turn);
    for (int i = 0; i < 4; ++i)
        norm += q[i] * q[i];
    const double s = 2.0 / norm, w = q[0], x = q[1], y = q[2], z = q[3];
    return (struct hand_matrix){{{1.0 - s * (y * y + z * z), s * (x * y - z * w),
                                  s * (x * z + y * w), number_in(numbers, -length, length)},
                                 {s * (x * y + z * w), 1.0 - s * (x * x + z * z),
                                  s * (y * z - x * w), number_in(numbers, -length, length)},
                                 {s * (x * z - y * w), s * (y * z + x * w),
                                  1.0 - s * (x * x + y * y), number_in(numbers, -length, length)}}};
}

static struct hand_matrix product(const struct hand_matrix *a, const struct hand_matrix *b)
{
    struct hand_matrix c;
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 4; ++j) {
            c.m[i][j] = j == 3 ? a->m[i][3] : 0.0;
            for (int k = 0; k < 3; ++k)
                c.m[i][j] += a->m[i][k] * b->m[k][j];
        }
    return c;
}

static struct hand_matrix inverse_of_rigid(const struct hand_matrix *a)
{
    struct hand_matrix c;
    for (int i = 0; i < 3; ++i) {
        c.m[i][3] = 0.0;
        for (int j = 0; j < 3; ++j) {
            c.m[i][j] = a->m[j][i];
            c.m[i][3] -= a->m[j][i] * a->m[j][3];
        }
    }
    return c;
}

static void make_vertex(struct numbers *numbers, struct hand_vertex *v)
{
    double sum = 0.0;
    for (int j = 0; j < 3; ++j)
        v->rest[j] = number_in(numbers, -0.15, 0.15);
    v->n = 1 + (int)(3.0 * number_in(numbers, 0.0, 1.0) * number_in(numbers, 0.0, 1.0));
    const int first = (int)number_in(numbers, 0.0, HAND_BONES);
    for (int k = 0; k < v->n; ++k) {
        v->bone[k] = (first + k) % HAND_BONES;
        v->weight[k] = number_in(numbers, 0.1, 1.0);
        sum += v->weight[k];
    }
    for (int k = 0; k < v->n; ++k)
        v->weight[k] /= sum;
}

bool hand_make(struct problem *problem, const int *sizes)
{
    if (!allocate(problem, sizes[0], sizes[1]))
        return false;
    struct hand *h = problem->input;
    struct numbers numbers = {(uint64_t)sizes[1]};
    struct hand_matrix absolute[HAND_BONES];
    for (int i = 0; i < HAND_BONES; ++i) {
        const bool root = i == 0 || i == HAND_BONES - 1 || i % 4 == 1;
        h->parent[i] = i == 0 ? -1 : root ? 0 : i - 1;
        h->relative[i] = rigid(&numbers, 0.4, 0.05);
        absolute[i] = i == 0 ? h->relative[i] : product(&absolute[h->parent[i]], &h->relative[i]);
        h->inverse_rest[i] = inverse_of_rigid(&absolute[i]);
    }
    for (int i = 0; i < h->n_vertices; ++i)
        make_vertex(&numbers, &h->vertex[i]);
    for (int i = 0; i < h->n_points; ++i) {
        h->vertex_of[i] = (int)number_in(&numbers, 0.0, h->n_vertices);
        for (int j = 0; j < 3; ++j)
            h->points[3 * i + j] = number_in(&numbers, 0.0, 1.0);
    }
    for (int i = 0; i < HAND_THETA; ++i)
        problem->x[i] = number_in(&numbers, -1.5, 1.5);
    return true;
}

/* ---- from files ---- */

/* The model's numbers are divided by colons. */
static void skip_colon(FILE *file)
{
    int c = getc(file);
    if (c != ':' && c != EOF)
        ungetc(c, file);
}

static bool colon_doubles(FILE *file, size_t n, double *to)
{
    for (size_t i = 0; i < n; ++i) {
        if (!input_doubles(file, 1, &to[i]))
            return false;
        skip_colon(file);
    }
    return true;
}

static bool colon_int(FILE *file, int low, int high, int *to)
{
    if (!input_ints(file, 1, to) || *to < low || *to >= high)
        return false;
    skip_colon(file);
    return true;
}

/* The upper three of four rows of four. */
static bool read_matrix(FILE *file, struct hand_matrix *matrix)
{
    double last[4];
    return colon_doubles(file, 12, matrix->m[0]) && colon_doubles(file, 4, last) &&
           last[0] == 0.0 && last[1] == 0.0 && last[2] == 0.0 && last[3] == 1.0;
}

static bool skip_name(FILE *file)
{
    int c;
    do
        c = getc(file);
    while (c != ':' && c != EOF);
    return c == ':';
}

/* name:parent:matrix:inverse of the absolute matrix */
static bool read_bones(const char *folder, struct hand *h)
{
    FILE *file = input_open(folder, "hand/model/bones.txt");
    bool done = file != NULL;
    for (int i = 0; done && i < HAND_BONES; ++i)
        done = skip_name(file) && colon_int(file, -1, i, &h->parent[i]) &&
               read_matrix(file, &h->relative[i]) && read_matrix(file, &h->inverse_rest[i]);
    if (file)
        fclose(file);
    return done;
}

/* position (3), normal (3), texture (2), number of weights, then a bone and its weight each. */
static bool read_vertex(FILE *file, struct hand_vertex *v)
{
    double unused[5];
    bool done = colon_doubles(file, 3, v->rest) && colon_doubles(file, 5, unused) &&
                colon_int(file, 0, HAND_WEIGHTS + 1, &v->n);
    for (int k = 0; done && k < v->n; ++k)
        done = colon_int(file, 0, HAND_BONES, &v->bone[k]) && colon_doubles(file, 1, &v->weight[k]);
    return done;
}

static int count_lines(FILE *file)
{
    int lines = 0;
    for (int c; (c = getc(file)) != EOF;)
        lines += c == '\n';
    rewind(file);
    return lines;
}

bool hand_read(struct problem *problem, const char *folder)
{
    const char *name = problem->spec->file;
    FILE *points = input_open(folder, name);
    FILE *vertices = input_open(folder, "hand/model/vertices.txt");
    int size[2];
    bool done = points && vertices && input_ints(points, 2, size) && size[0] > 0 &&
                size[0] <= 10000000 && size[1] == HAND_THETA;
    done = done && allocate(problem, count_lines(vertices), size[0]);
    struct hand *h = problem->input;
    for (int i = 0; done && i < h->n_points; ++i)
        done = input_ints(points, 1, &h->vertex_of[i]) && h->vertex_of[i] >= 0 &&
               h->vertex_of[i] < h->n_vertices && input_doubles(points, 3, h->points + 3 * i);
    done = done && input_doubles(points, HAND_THETA, problem->x);
    for (int i = 0; done && i < h->n_vertices; ++i)
        done = read_vertex(vertices, &h->vertex[i]);
    done = done && read_bones(folder, h);
    if (points)
        fclose(points);
    if (vertices)
        fclose(vertices);
    return done || input_refuse(folder, name);
}
