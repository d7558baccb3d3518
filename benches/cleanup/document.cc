// A reader of documents: JSON with comments, trailing commas, hexadecimal numbers and bare names,
// which it checks, prints again and looks things up in. Compiled by `clang++ -fsanitize=fuzzer`.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace {

struct Value;
using Ref = std::unique_ptr<Value>;

struct Value {
    enum Kind { Null, False, True, Number, Text, List, Table } kind = Null;
    double number = 0;
    bool whole = false;
    std::string text;
    std::vector<Ref> list;
    std::map<std::string, Ref> table;
};

class Reader {
public:
    Reader(const char *at, const char *end) : at(at), end(end) {}

    Ref document()
    {
        Ref value = read(0);
        blanks();
        return failed || at != end ? nullptr : std::move(value);
    }

private:
    static constexpr int deepest = 24;
    const char *at, *end;
    bool failed = false;

    Ref fail()
    {
        failed = true;
        return nullptr;
    }

    bool next_is(const char *word)
    {
        const char *from = at;
        for (; *word; word++, from++)
            if (from == end || *from != *word)
                return false;
        at = from;
        return true;
    }

    void blanks()
    {
        for (;;) {
            while (at != end && isspace(static_cast<unsigned char>(*at)))
                at++;
            if (next_is("//")) {
                while (at != end && *at != '\n')
                    at++;
            } else if (next_is("/*")) {
                while (at != end && !next_is("*/"))
                    at++;
            } else {
                return;
            }
        }
    }

    Ref plain(Value::Kind kind)
    {
        Ref value = std::make_unique<Value>();
        value->kind = kind;
        return value;
    }

    Ref read(int depth)
    {
        blanks();
        if (at == end || depth > deepest)
            return fail();
        switch (*at) {
        case '{': return table(depth);
        case '[': return list(depth);
        case '"':
        case '\'': return text(*at);
        case 'n': return next_is("null") ? plain(Value::Null) : fail();
        case 't': return next_is("true") ? plain(Value::True) : fail();
        case 'f': return next_is("false") ? plain(Value::False) : fail();
        default: return number();
        }
    }

    Ref list(int depth)
    {
        Ref value = plain(Value::List);
        at++;
        for (;;) {
            blanks();
            if (next_is("]"))
                return value;
            Ref item = read(depth + 1);
            if (!item)
                return fail();
            value->list.push_back(std::move(item));
            blanks();
            if (next_is("]"))
                return value;
            if (!next_is(","))
                return fail();
        }
    }

    bool name(std::string &to)
    {
        if (at != end && (*at == '"' || *at == '\'')) {
            Ref quoted = text(*at);
            if (quoted)
                to = quoted->text;
            return quoted != nullptr;
        }
        while (at != end && (isalnum(static_cast<unsigned char>(*at)) || *at == '_' || *at == '$'))
            to += *at++;
        return !to.empty() && !isdigit(static_cast<unsigned char>(to[0]));
    }

    Ref table(int depth)
    {
        Ref value = plain(Value::Table);
        at++;
        for (;;) {
            blanks();
            if (next_is("}"))
                return value;
            std::string key;
            if (!name(key))
                return fail();
            blanks();
            if (!next_is(":") && !next_is("="))
                return fail();
            Ref item = read(depth + 1);
            if (!item || value->table.count(key))
                return fail();
            value->table[key] = std::move(item);
            blanks();
            if (next_is("}"))
                return value;
            if (!next_is(",") && !next_is(";"))
                return fail();
        }
    }

    static int digit(char sign)
    {
        if (sign >= '0' && sign <= '9')
            return sign - '0';
        if (sign >= 'a' && sign <= 'f')
            return sign - 'a' + 10;
        if (sign >= 'A' && sign <= 'F')
            return sign - 'A' + 10;
        return -1;
    }

    bool unit(unsigned &to)
    {
        to = 0;
        for (int i = 0; i < 4; i++) {
            int value = at == end ? -1 : digit(*at);
            if (value < 0)
                return false;
            to = to * 16 + static_cast<unsigned>(value);
            at++;
        }
        return true;
    }

    static void encode(std::string &to, unsigned point)
    {
        if (point < 0x80) {
            to += static_cast<char>(point);
        } else if (point < 0x800) {
            to += static_cast<char>(0xc0 | point >> 6);
            to += static_cast<char>(0x80 | (point & 0x3f));
        } else if (point < 0x10000) {
            to += static_cast<char>(0xe0 | point >> 12);
            to += static_cast<char>(0x80 | (point >> 6 & 0x3f));
            to += static_cast<char>(0x80 | (point & 0x3f));
        } else {
            to += static_cast<char>(0xf0 | point >> 18);
            to += static_cast<char>(0x80 | (point >> 12 & 0x3f));
            to += static_cast<char>(0x80 | (point >> 6 & 0x3f));
            to += static_cast<char>(0x80 | (point & 0x3f));
        }
    }

    bool escape(std::string &to)
    {
        unsigned high, low;
        if (at == end)
            return false;
        switch (*at++) {
        case 'n': to += '\n'; return true;
        case 't': to += '\t'; return true;
        case 'r': to += '\r'; return true;
        case 'b': to += '\b'; return true;
        case 'f': to += '\f'; return true;
        case '\n': return true;
        case '"':
        case '\'':
        case '\\':
        case '/': to += at[-1]; return true;
        case 'u':
            if (!unit(high))
                return false;
            if (high >= 0xdc00 && high < 0xe000)
                return false;
            if (high >= 0xd800 && high < 0xdc00) {
                if (!next_is("\\u") || !unit(low) || low < 0xdc00 || low > 0xdfff)
                    return false;
                high = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
            }
            encode(to, high);
            return true;
        default: return false;
        }
    }

    // The length of what a first byte begins in UTF-8; 0 of one that begins nothing.
    static int length_of(unsigned char first)
    {
        if (first < 0x80)
            return 1;
        if (first >= 0xc2 && first < 0xe0)
            return 2;
        if (first >= 0xe0 && first < 0xf0)
            return 3;
        return first >= 0xf0 && first < 0xf5 ? 4 : 0;
    }

    Ref text(char quote)
    {
        Ref value = plain(Value::Text);
        for (at++; at != end;) {
            if (*at == quote) {
                at++;
                return value;
            }
            if (next_is("\\")) {
                if (!escape(value->text))
                    return fail();
                continue;
            }
            int length = length_of(static_cast<unsigned char>(*at));
            if (length == 0 || end - at < length || *at == '\n')
                return fail();
            for (int i = 1; i < length; i++)
                if ((at[i] & 0xc0) != 0x80)
                    return fail();
            value->text.append(at, static_cast<size_t>(length));
            at += length;
        }
        return fail();
    }

    Ref number()
    {
        Ref value = plain(Value::Number);
        bool negative = next_is("-"), fraction = false;
        if (!negative)
            next_is("+");
        if (next_is("0x")) {
            int digits = 0, next;
            for (; at != end && (next = digit(*at)) >= 0; at++, digits++)
                value->number = value->number * 16 + next;
            value->whole = true;
            return digits > 0 && digits <= 12 ? std::move(value) : fail();
        }
        if (next_is("Infinity") || next_is("NaN"))
            return value;
        const char *from = at;
        while (at != end && isdigit(static_cast<unsigned char>(*at)))
            value->number = value->number * 10 + (*at++ - '0');
        if (next_is(".")) {
            fraction = true;
            double weight = 0.1;
            for (; at != end && isdigit(static_cast<unsigned char>(*at)); weight /= 10)
                value->number += weight * (*at++ - '0');
        }
        if (at == from || (at == from + 1 && fraction))
            return fail();
        if (next_is("e") || next_is("E")) {
            int power = 0, digits = 0;
            bool down = next_is("-");
            if (!down)
                next_is("+");
            for (; at != end && isdigit(static_cast<unsigned char>(*at)); digits++)
                power = std::min(power * 10 + (*at++ - '0'), 400);
            if (digits == 0)
                return fail();
            value->number *= std::pow(10, down ? -power : power);
            fraction = true;
        }
        if (negative)
            value->number = -value->number;
        value->whole = !fraction;
        return value;
    }
};

void print(const Value &value, std::string &to, int indent)
{
    switch (value.kind) {
    case Value::Null: to += "null"; return;
    case Value::False: to += "false"; return;
    case Value::True: to += "true"; return;
    case Value::Number:
        to += value.whole && std::fabs(value.number) < 1e15
                  ? std::to_string(static_cast<long long>(value.number))
                  : std::to_string(value.number);
        return;
    case Value::Text:
        to += '"';
        for (char sign : value.text) {
            if (sign == '"' || sign == '\\')
                to += '\\';
            if (static_cast<unsigned char>(sign) < 0x20)
                to += "\\u00";
            to += sign;
        }
        to += '"';
        return;
    case Value::List:
        to += '[';
        for (const Ref &item : value.list) {
            to.append(static_cast<size_t>(indent), ' ');
            print(*item, to, indent + 2);
            to += ',';
        }
        to += ']';
        return;
    case Value::Table:
        to += '{';
        for (const auto &[key, item] : value.table) {
            to += key + ": ";
            print(*item, to, indent + 2);
            to += ',';
        }
        to += '}';
    }
}

// What the document's own `path` names in it: `a.b.0`.
const Value *look_up(const Value &root)
{
    auto path = root.table.find("path");
    if (root.kind != Value::Table || path == root.table.end())
        return nullptr;
    const Value *at = &root;
    std::string step, all = path->second->text + ".";
    for (char sign : all) {
        if (sign != '.') {
            step += sign;
            continue;
        }
        if (at->kind == Value::Table) {
            auto found = at->table.find(step);
            if (found == at->table.end())
                return nullptr;
            at = found->second.get();
        } else if (at->kind == Value::List) {
            size_t index = std::strtoul(step.c_str(), nullptr, 10);
            if (index >= at->list.size())
                return nullptr;
            at = at->list[index].get();
        } else {
            return nullptr;
        }
        step.clear();
    }
    return at;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *from = reinterpret_cast<const char *>(data);
    Ref value = Reader(from, from + size).document();
    if (!value)
        return 0;
    std::string printed;
    print(*value, printed, 0);
    if (const Value *found = look_up(*value))
        print(*found, printed, 1);
    return 0;
}
