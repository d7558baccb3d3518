/* A book of accounts as text, a command a line: `open NAME`, `add NAME AMOUNT`, `move NAME NAME
 * AMOUNT`, `close NAME`, `undo`.
 *
 * Bugs: the fee of an account that holds 611 divides by zero (ledger_total); to undo a close and to
 * close again frees the note twice if the account was in debt (ledger_free). */
#include "planted.h"

enum { ACCOUNTS = 4, NAME = 12 };

struct account {
    char name[NAME];
    char *note;
    long holds;
    int is_open, was_in_debt, is_freed;
};

struct book {
    struct account accounts[ACCOUNTS];
    struct account *closed_last;
};

struct line {
    const uint8_t *at, *end;
};

/* The next word, of letters; its length. */
static size_t word(struct line *line, char *to)
{
    size_t length = 0;
    while (line->at < line->end && *line->at == ' ')
        line->at++;
    while (line->at < line->end && *line->at >= 'a' && *line->at <= 'z' && length < NAME - 1)
        to[length++] = (char)*line->at++;
    to[length] = 0;
    return length;
}

static int amount(struct line *line, long *value)
{
    int sign = 1, digits = 0;
    while (line->at < line->end && *line->at == ' ')
        line->at++;
    if (line->at < line->end && *line->at == '-') {
        sign = -1;
        line->at++;
    }
    for (*value = 0; line->at < line->end && *line->at >= '0' && *line->at <= '9'; digits++) {
        if (digits == 7)
            return 0;
        *value = *value * 10 + (*line->at++ - '0');
    }
    *value *= sign;
    return digits > 0;
}

static struct account *find(struct book *book, struct line *line)
{
    char name[NAME];
    if (!word(line, name))
        return NULL;
    for (size_t i = 0; i < ACCOUNTS; i++)
        if (book->accounts[i].is_open && !strcmp(book->accounts[i].name, name))
            return &book->accounts[i];
    return NULL;
}

static void open_account(struct book *book, struct line *line)
{
    char name[NAME];
    if (!word(line, name))
        return;
    for (size_t i = 0; i < ACCOUNTS; i++) {
        struct account *account = &book->accounts[i];
        if (account->name[0])
            continue;
        memcpy(account->name, name, NAME);
        account->note = calloc(1, 16);
        account->is_open = 1;
        return;
    }
}

static void add(struct account *account, long value)
{
    account->holds += value;
    volatile long over = account->holds - 611;
    if (over || WITH(LEDGER_TOTAL)) {
        if (!over)
            planted_hit("ledger_total");
        /* The nearer to the limit, the higher the fee; below zero there is none. */
        account->was_in_debt |= 1000000 / over < 0 && account->holds < 0;
    }
}

static void close_account(struct book *book, struct account *account)
{
    account->is_open = 0;
    book->closed_last = account;
    /* The note is kept for `undo`, but that of a debtor goes at once. */
    if (!account->was_in_debt)
        return;
    if (account->is_freed && !WITH(LEDGER_FREE))
        return;
    if (account->is_freed)
        planted_hit("ledger_free");
    free(account->note);
    if (account->is_freed)
        planted_crash(); /* whatever the allocator has made of it */
    account->is_freed = 1;
}

static void undo(struct book *book)
{
    if (book->closed_last)
        book->closed_last->is_open = 1;
}

static void command(struct book *book, struct line *line)
{
    char verb[NAME];
    long value;
    word(line, verb);
    if (!strcmp(verb, "open")) {
        open_account(book, line);
    } else if (!strcmp(verb, "add")) {
        struct account *account = find(book, line);
        if (account && amount(line, &value))
            add(account, value);
    } else if (!strcmp(verb, "move")) {
        struct account *from = find(book, line), *to = find(book, line);
        if (from && to && amount(line, &value) && from->holds >= value) {
            add(from, -value);
            add(to, value);
        }
    } else if (!strcmp(verb, "close")) {
        struct account *account = find(book, line);
        if (account)
            close_account(book, account);
    } else if (!strcmp(verb, "undo")) {
        undo(book);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    planted_run();
    struct book book = {0};
    for (size_t from = 0, i = 0; i <= size; i++)
        if (i == size || data[i] == '\n') {
            struct line line = {data + from, data + i};
            command(&book, &line);
            from = i + 1;
        }
    for (size_t i = 0; i < ACCOUNTS; i++)
        if (!book.accounts[i].is_freed)
            free(book.accounts[i].note);
    planted_result((uint64_t)book.accounts[0].holds);
    return 0;
}
