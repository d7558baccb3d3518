/* Strict readers of small languages, each with a construct that it cannot do with.
 * VARIANT 0: TOML, an array of strings below [server.limits]   [server.limits]\na=['']
 * VARIANT 1: GraphQL, a null argument of a directive, deep     {a{b{c@d(e:null)}}}
 * VARIANT 2: SQL, HAVING without GROUP BY in a subquery of a known table
 * VARIANT 3: Lua, a loop in a function in a table               a={function()while 0do end end}
 * VARIANT 4: shell, a loop with two commands in a substitution $(for a in b;do c;d;done)
 * VARIANT 5: Scheme, set! of an unknown name in two scopes     (let()(lambda()(set! a 1))) */
#include "family.h"
#include <setjmp.h>

BUG_WRITE(construct_is_not_expected)

enum { NAMES = 512, LEVELS = 400 };
typedef struct { const uint8_t *text; size_t length; } Name;

static const uint8_t *at, *end;
static jmp_buf refused;
static int level, found;

static _Noreturn void refuse(void) { longjmp(refused, 1); }

static void enter(void) {
    if (++level > LEVELS) {
        refuse();
    }
}

static int is_letter(int byte) { return (byte | 32) >= 'a' && (byte | 32) <= 'z'; }
static int is_digit(int byte) { return byte >= '0' && byte <= '9'; }
static int next(void) { return at < end ? *at : -1; }

/* Characters that separate tokens, and where comments begin. */
static const char *blanks, *comment;

static void space(void) {
    for (;;) {
        size_t length = strlen(comment);
        if (at < end && *at && strchr(blanks, *at)) {
            at++;
        } else if ((size_t)(end - at) >= length && memcmp(at, comment, length) == 0) {
            while (at < end && *at != '\n') {
                at++;
            }
        } else {
            return;
        }
    }
}

static int take(const char *sign) {
    space();
    size_t length = strlen(sign);
    if ((size_t)(end - at) < length || memcmp(at, sign, length) != 0) {
        return 0;
    }
    /* A word ends where no letter follows. */
    if (is_letter(*sign) && length < (size_t)(end - at) &&
        (is_letter(at[length]) || is_digit(at[length]) || at[length] == '_')) {
        return 0;
    }
    at += length;
    return 1;
}

static void need(const char *sign) {
    if (!take(sign)) {
        refuse();
    }
}

/* A word of letters, digits, and `more`; empty where none begins. */
static Name word(const char *more) {
    space();
    Name name = {at, 0};
    if (is_letter(next()) || (next() > 0 && strchr(more, next()))) {
        while (is_letter(next()) || is_digit(next()) || (next() > 0 && strchr(more, next()))) {
            at++;
        }
    }
    name.length = (size_t)(at - name.text);
    return name;
}

static int is(Name name, const char *text) {
    return name.length == strlen(text) && memcmp(name.text, text, name.length) == 0;
}

static int is_one_of(Name name, const char *const *all) {
    int yes = 0;
    for (; *all; all++) {
        yes |= is(name, *all);
    }
    return yes;
}

static Name name(const char *more) {
    Name one = word(more);
    if (!one.length) {
        refuse();
    }
    return one;
}

static int number(void) {
    space();
    const uint8_t *from = at;
    if (next() == '-') {
        at++;
    }
    if (!is_digit(next())) {
        at = from;
        return 0;
    }
    while (is_digit(next()) || next() == '.') {
        at++;
    }
    return 1;
}

static int quoted(char quote) {
    space();
    if (next() != quote) {
        return 0;
    }
    for (at++; next() != quote; at++) {
        if (next() < ' ') {
            refuse();
        }
    }
    at++;
    return 1;
}

static int string(void) { return quoted('"') || quoted('\''); }

/* TOML */

static int in_limits;

static int toml_value(void) {
    int is_string = string();
    enter();
    if (is_string || number() || take("true") || take("false")) {
    } else if (take("[")) {
        int strings = 0;
        while (!take("]")) {
            strings += toml_value();
            if (!take(",")) {
                need("]");
                break;
            }
        }
        found |= strings && in_limits;
    } else {
        need("{");
        int outer = in_limits;
        in_limits = 0;
        if (!take("}")) {
            do {
                name("_-");
                need("=");
                toml_value();
            } while (take(","));
            need("}");
        }
        in_limits = outer;
    }
    level--;
    return is_string;
}

static void toml(void) {
    for (space(); at < end; space()) {
        if (take("\n")) {
            continue;
        }
        if (take("[")) {
            Name first = name("_-"), last = first;
            int names = 1;
            for (; take("."); names++) {
                last = name("_-");
            }
            need("]");
            in_limits = names == 2 && is(first, "server") && is(last, "limits");
        } else {
            name("_-");
            need("=");
            toml_value();
        }
        if (at < end) {
            need("\n");
        }
    }
}

/* GraphQL */

static void graphql_value(int is_deep_directive) {
    enter();
    if (take("null")) {
        found |= is_deep_directive;
    } else if (take("[")) {
        while (!take("]")) {
            graphql_value(0);
        }
    } else if (take("{")) {
        while (!take("}")) {
            name("_");
            need(":");
            graphql_value(0);
        }
    } else if (take("$")) {
        name("_");
    } else if (!string() && !number()) {
        name("_");
    }
    level--;
}

static void graphql_arguments(int is_deep_directive) {
    if (take("(")) {
        do {
            name("_");
            need(":");
            graphql_value(is_deep_directive);
        } while (!take(")"));
    }
}

static void graphql_selection(int depth) {
    enter();
    need("{");
    do {
        if (take("...")) {
            if (take("on")) {
                name("_");
                graphql_selection(depth);
            } else {
                name("_");
            }
            continue;
        }
        name("_");
        if (take(":")) {
            name("_");
        }
        graphql_arguments(0);
        while (take("@")) {
            name("_");
            graphql_arguments(depth >= 3);
        }
        space();
        if (next() == '{') {
            graphql_selection(depth + 1);
        }
    } while (!take("}"));
    level--;
}

static void graphql(void) {
    for (space(); at < end; space()) {
        if (take("fragment")) {
            name("_");
            need("on");
            name("_");
        } else if (take("query") || take("mutation")) {
            word("_");
            if (take("(")) {
                do {
                    need("$");
                    name("_");
                    need(":");
                    name("_");
                    take("!");
                } while (!take(")"));
            }
        }
        graphql_selection(1);
    }
}

/* SQL */

static Name tables[NAMES];
static size_t table_count;
static const char *const sql_words[] = {"SELECT", "FROM", "WHERE", "GROUP", "BY", "HAVING", "ORDER",
    "JOIN", "ON", "IN", "AND", "OR", "CREATE", "TABLE", "INSERT", "INTO", "VALUES", "AS", 0};

static Name sql_name(void) {
    Name one = name("_");
    if (is_one_of(one, sql_words)) {
        refuse();
    }
    return one;
}

static void sql_table(void) {
    Name one = sql_name();
    for (size_t index = 0; index < table_count; index++) {
        if (tables[index].length == one.length && memcmp(tables[index].text, one.text, one.length) == 0) {
            return;
        }
    }
    refuse();
}

static void sql_select(int is_inner);

static void sql_expression(void) {
    enter();
    do {
        if (take("(")) {
            sql_expression();
            need(")");
        } else if (!string() && !number()) {
            sql_name();
            if (take("(")) {
                if (!take("*")) {
                    sql_expression();
                }
                need(")");
            } else if (take(".")) {
                sql_name();
            }
        }
        if (take("IN")) {
            need("(");
            if (take("SELECT")) {
                sql_select(1);
            } else {
                do {
                    sql_expression();
                } while (take(","));
            }
            need(")");
        }
    } while (take("AND") || take("OR") || take("=") || take("<") || take(">") || take("+") || take("*"));
    level--;
}

static void sql_list(void) {
    do {
        sql_expression();
        if (take("AS")) {
            sql_name();
        }
    } while (take(","));
}

static void sql_select(int is_inner) {
    if (!take("*")) {
        sql_list();
    }
    need("FROM");
    sql_table();
    while (take("JOIN")) {
        sql_table();
        need("ON");
        sql_expression();
    }
    if (take("WHERE")) {
        sql_expression();
    }
    int is_grouped = take("GROUP");
    if (is_grouped) {
        need("BY");
        sql_list();
    }
    if (take("HAVING")) {
        sql_expression();
        found |= is_inner && !is_grouped;
    }
    if (take("ORDER")) {
        need("BY");
        sql_list();
    }
}

static void sql(void) {
    while (space(), at < end) {
        if (take("CREATE")) {
            need("TABLE");
            if (table_count == NAMES) {
                refuse();
            }
            tables[table_count++] = sql_name();
            need("(");
            do {
                sql_name();
                while (word("_").length) {
                }
            } while (take(","));
            need(")");
        } else if (take("INSERT")) {
            need("INTO");
            sql_table();
            need("VALUES");
            do {
                need("(");
                sql_list();
                need(")");
            } while (take(","));
        } else {
            need("SELECT");
            sql_select(0);
        }
        if (at < end && !take(";")) {
            space();
            if (at < end) {
                refuse();
            }
        }
    }
}

/* Lua */

static const char *const lua_words[] = {"local", "function", "if", "then", "else", "end", "while",
    "do", "return", "nil", "true", "false", "not", "and", "or", 0};
static int in_table_function;

static Name lua_name(void) {
    Name one = name("_");
    if (is_one_of(one, lua_words)) {
        refuse();
    }
    return one;
}

static void lua_block(void);

static void lua_function(void) {
    need("(");
    if (!take(")")) {
        do {
            lua_name();
        } while (take(","));
        need(")");
    }
    lua_block();
    need("end");
}

static void lua_expressions(const char *until);

static void lua_expression(int in_table) {
    enter();
    do {
        while (take("not") || take("#")) {
        }
        if (take("function")) {
            int outer = in_table_function;
            in_table_function = in_table;
            lua_function();
            in_table_function = outer;
        } else if (take("{")) {
            while (!take("}")) {
                const uint8_t *here = at;
                space();
                if (!(is_letter(next()) && name("_").length && take("="))) {
                    at = here;
                }
                lua_expression(1);
                if (!take(",")) {
                    need("}");
                    break;
                }
            }
        } else if (take("(")) {
            lua_expression(0);
            need(")");
        } else if (!take("nil") && !take("true") && !take("false") && !string() && !number()) {
            lua_name();
            for (;;) {
                space();
                int is_joined = end - at > 1 && at[0] == '.' && at[1] == '.';
                if (!is_joined && take(".")) {
                    lua_name();
                } else if (take("(")) {
                    lua_expressions(")");
                } else {
                    break;
                }
            }
        }
    } while (take("..") || take("+") || take("*") || take("<") || take("==") || take("and") || take("or"));
    level--;
}

static void lua_expressions(const char *until) {
    if (!take(until)) {
        do {
            lua_expression(0);
        } while (take(","));
        need(until);
    }
}

static void lua_block(void) {
    enter();
    for (;;) {
        space();
        if (take(";")) {
        } else if (take("local")) {
            lua_name();
            if (take("=")) {
                lua_expression(0);
            }
        } else if (take("if")) {
            lua_expression(0);
            need("then");
            lua_block();
            if (take("else")) {
                lua_block();
            }
            need("end");
        } else if (take("while")) {
            lua_expression(0);
            need("do");
            lua_block();
            need("end");
            found |= in_table_function;
        } else if (take("function")) {
            lua_name();
            lua_function();
        } else if (take("return")) {
            lua_expression(0);
            break;
        } else if (is_letter(next())) {
            const uint8_t *here = at;
            if (is_one_of(word("_"), lua_words)) {
                at = here;
                break;
            }
            while (take(".")) {
                lua_name();
            }
            if (take("=")) {
                lua_expression(0);
            } else {
                need("(");
                lua_expressions(")");
            }
        } else {
            break;
        }
    }
    level--;
}

/* Shell */

static const char *const shell_words[] = {"if", "then", "else", "fi", "for", "in", "do", "done", 0};
static int in_substitution;

static void newlines(void) {
    while (take("\n")) {
    }
}

static int shell_list(void);

static int shell_word(void) {
    if (string()) {
        return 1;
    }
    if (take("$(")) {
        int outer = in_substitution;
        in_substitution = 1;
        shell_list();
        in_substitution = outer;
        need(")");
        return 1;
    }
    const uint8_t *here = at;
    Name one = word("-_./=$0123456789*");
    if (is_one_of(one, shell_words)) {
        at = here;
        return 0;
    }
    return one.length > 0;
}

static int shell_command(void) {
    if (take("if")) {
        if (!shell_list()) {
            refuse();
        }
        need("then");
        if (!shell_list()) {
            refuse();
        }
        if (take("else") && !shell_list()) {
            refuse();
        }
        need("fi");
    } else if (take("for")) {
        name("_");
        need("in");
        while (shell_word()) {
        }
        if (!take(";")) {
            need("\n");
        }
        newlines();
        need("do");
        int commands = shell_list();
        if (!commands) {
            refuse();
        }
        need("done");
        found |= in_substitution && commands >= 2;
    } else if (take("(")) {
        int outer = in_substitution;
        in_substitution = 0;
        if (!shell_list()) {
            refuse();
        }
        in_substitution = outer;
        need(")");
    } else {
        int words = 0;
        while (shell_word()) {
            words++;
        }
        if (!words) {
            return 0;
        }
    }
    while (take(">") || take("<")) {
        if (!shell_word()) {
            refuse();
        }
    }
    return 1;
}

/* Returns the number of commands that are separated by semicolons or newlines. */
static int shell_list(void) {
    enter();
    int commands = 0;
    for (;;) {
        newlines();
        if (!shell_command()) {
            break;
        }
        while (take("&&") || take("||") || take("|")) {
            newlines();
            if (!shell_command()) {
                refuse();
            }
        }
        commands++;
        if (!take(";") && !take("\n")) {
            break;
        }
    }
    level--;
    return commands;
}

/* Scheme */

static Name scope[NAMES];
static size_t bound;
static int scopes;

static void scheme_names(void) {
    need("(");
    while (!take(")")) {
        if (bound == NAMES) {
            refuse();
        }
        scope[bound++] = name("-!?");
    }
}

static void scheme(void) {
    enter();
    if (string() || number()) {
        level--;
        return;
    }
    if (!take("(")) {
        name("-!?+*<=");
        level--;
        return;
    }
    size_t outer = bound;
    if (take("lambda")) {
        scheme_names();
        scopes++;
        do {
            scheme();
        } while (!take(")"));
        scopes--;
        bound = outer;
    } else if (take("let")) {
        need("(");
        while (take("(")) {
            Name one = name("-!?");
            scheme();
            need(")");
            if (bound == NAMES) {
                refuse();
            }
            scope[bound++] = one;
        }
        need(")");
        scopes++;
        do {
            scheme();
        } while (!take(")"));
        scopes--;
        bound = outer;
    } else if (take("set!")) {
        Name one = name("-!?");
        int known = 0;
        for (size_t index = 0; index < bound; index++) {
            known |= scope[index].length == one.length && memcmp(scope[index].text, one.text, one.length) == 0;
        }
        scheme();
        need(")");
        found |= !known && scopes >= 2;
    } else {
        while (!take(")")) {
            scheme();
        }
    }
    level--;
}

static void read_all(void) {
    switch (VARIANT) {
    case 0: toml(); break;
    case 1: graphql(); break;
    case 2: sql(); break;
    case 3: lua_block(); break;
    case 4: shell_list(); break;
    default:
        while (space(), at < end) {
            scheme();
        }
    }
    space();
    if (at < end) {
        refuse();
    }
}

int family(const uint8_t *data, size_t size) {
    static const char *const all_blanks[] = {" \t", " \t\n,", " \t\n", " \t\n", " \t", " \t\n"};
    static const char *const comments[] = {"#", "#", "--", "--", "#", ";"};
    at = data;
    end = data + size;
    level = found = in_limits = in_table_function = in_substitution = scopes = 0;
    table_count = bound = 0;
    blanks = all_blanks[VARIANT];
    comment = comments[VARIANT];
    if (setjmp(refused)) {
        return REFUSED;
    }
    read_all();
    if (found) {
        construct_is_not_expected();
    }
    return PASSED;
}
