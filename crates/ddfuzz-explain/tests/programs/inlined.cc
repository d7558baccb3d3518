/* A method that is inlined writes the size by which the program fails. */
#include <cstdio>
#include <cstring>

struct Table {
    int size;
    void resize(int n) { size = n * 3; }
};
static Table table;
static char text[64];

__attribute__((noinline)) static void read_input() {
    size_t n = fread(text, 1, sizeof text - 1, stdin);
    text[n] = 0;
}

__attribute__((noinline)) static int use() {
    if (table.size > 20) {
        volatile int *nowhere = nullptr;
        return *nowhere;
    }
    return table.size;
}

int main() {
    read_input();
    table.resize(strlen(text));
    printf("%d\n", use());
    return 0;
}
