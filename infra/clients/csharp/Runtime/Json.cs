using System;
using System.Collections;
using System.Collections.Generic;
using System.Globalization;
using System.Linq;
using System.Text;

namespace Muster
{
    /// <summary>Fields of a request; those that are null are not sent.</summary>
    internal interface IFields
    {
        IEnumerable<KeyValuePair<string, object>> Fields();
    }

    /// <summary>
    /// Any JSON as plain values: <c>IDictionary&lt;string, object&gt;</c>, <c>IList&lt;object&gt;</c>,
    /// <c>string</c>, <c>long</c>, <c>double</c>, <c>bool</c> and null.
    /// </summary>
    public static class Json
    {
        /// <exception cref="FormatException">The text is not JSON.</exception>
        public static object Parse(string text) => new JsonReader(text).ReadAll();

        /// <exception cref="ArgumentException">The value has no form in JSON.</exception>
        public static string Write(object value)
        {
            var text = new StringBuilder();
            Write(text, value);
            return text.ToString();
        }

        internal static T Field<T>(IDictionary<string, object> json, string name, Func<object, T> read) where T : class
        {
            object value;
            return json.TryGetValue(name, out value) && value != null ? read(value) : null;
        }

        internal static T? Value<T>(IDictionary<string, object> json, string name, Func<object, T> read) where T : struct
        {
            object value;
            return json.TryGetValue(name, out value) && value != null ? read(value) : (T?)null;
        }

        internal static T Required<T>(IDictionary<string, object> json, string name, Func<object, T> read) => read(json[name]);

        internal static string Text(object value) => (string)value;

        internal static bool Flag(object value) => (bool)value;

        internal static int Integer(object value) => Convert.ToInt32(value, CultureInfo.InvariantCulture);

        internal static double Number(object value) => Convert.ToDouble(value, CultureInfo.InvariantCulture);

        internal static object Any(object value) => value;

        internal static Func<object, T> Object<T>(Func<IDictionary<string, object>, T> read) =>
            value => read((IDictionary<string, object>)value);

        internal static Func<object, IList<T>> List<T>(Func<object, T> read) =>
            value => ((IList<object>)value).Select(read).ToList();

        internal static Func<object, IDictionary<string, T>> Map<T>(Func<object, T> read) =>
            value => ((IDictionary<string, object>)value).ToDictionary(item => item.Key, item => read(item.Value));

        static void Write(StringBuilder text, object value)
        {
            if (value == null) text.Append("null");
            else if (value is bool) text.Append((bool)value ? "true" : "false");
            else if (value is string) WriteString(text, (string)value);
            else if (value is double || value is float) text.Append(Finite((IFormattable)value));
            else if (IsInteger(value) || value is decimal) text.Append(((IFormattable)value).ToString(null, CultureInfo.InvariantCulture));
            else if (value is IFields) WriteFields(text, (IFields)value);
            else if (value is IDictionary) WriteMap(text, (IDictionary)value);
            else if (value is IEnumerable) WriteList(text, (IEnumerable)value);
            else throw new ArgumentException($"{value.GetType()} has no form in JSON");
        }

        static bool IsInteger(object value) =>
            value is int || value is long || value is short || value is byte || value is uint || value is ulong || value is ushort || value is sbyte;

        static string Finite(IFormattable value)
        {
            var number = Convert.ToDouble(value, CultureInfo.InvariantCulture);
            if (double.IsNaN(number) || double.IsInfinity(number)) throw new ArgumentException($"{number} has no form in JSON");
            return value.ToString("R", CultureInfo.InvariantCulture);
        }

        static void WriteFields(StringBuilder text, IFields value)
        {
            var separator = '{';
            foreach (var field in value.Fields())
            {
                if (field.Value == null) continue;
                WriteMember(text.Append(separator), field.Key, field.Value);
                separator = ',';
            }
            text.Append(separator == '{' ? "{}" : "}");
        }

        static void WriteMap(StringBuilder text, IDictionary value)
        {
            var separator = '{';
            foreach (DictionaryEntry entry in value)
            {
                WriteMember(text.Append(separator), (string)entry.Key, entry.Value);
                separator = ',';
            }
            text.Append(separator == '{' ? "{}" : "}");
        }

        static void WriteMember(StringBuilder text, string name, object value)
        {
            WriteString(text, name);
            Write(text.Append(':'), value);
        }

        static void WriteList(StringBuilder text, IEnumerable value)
        {
            var separator = '[';
            foreach (var item in value)
            {
                Write(text.Append(separator), item);
                separator = ',';
            }
            text.Append(separator == '[' ? "[]" : "]");
        }

        static void WriteString(StringBuilder text, string value)
        {
            text.Append('"');
            foreach (var letter in value)
            {
                if (letter == '"' || letter == '\\') text.Append('\\').Append(letter);
                else if (letter < ' ') text.Append("\\u").Append(((int)letter).ToString("x4"));
                else text.Append(letter);
            }
            text.Append('"');
        }
    }

    internal sealed class JsonReader
    {
        readonly string text;
        int at;

        internal JsonReader(string text)
        {
            this.text = text;
        }

        internal object ReadAll()
        {
            var value = ReadValue();
            if (Peek() != '\0' || at < text.Length) throw Wrong();
            return value;
        }

        object ReadValue()
        {
            switch (Peek())
            {
                case '{': return ReadMap();
                case '[': return ReadList();
                case '"': return ReadString();
                case 't': return ReadWord("true", true);
                case 'f': return ReadWord("false", false);
                case 'n': return ReadWord("null", null);
                default: return ReadNumber();
            }
        }

        IDictionary<string, object> ReadMap()
        {
            var map = new Dictionary<string, object>();
            at++;
            if (Skip('}')) return map;
            do
            {
                if (Peek() != '"') throw Wrong();
                var name = ReadString();
                if (!Skip(':')) throw Wrong();
                map[name] = ReadValue();
            }
            while (Skip(','));
            if (!Skip('}')) throw Wrong();
            return map;
        }

        IList<object> ReadList()
        {
            var list = new List<object>();
            at++;
            if (Skip(']')) return list;
            do list.Add(ReadValue());
            while (Skip(','));
            if (!Skip(']')) throw Wrong();
            return list;
        }

        string ReadString()
        {
            var read = new StringBuilder();
            for (at++; at < text.Length && text[at] != '"'; at++)
            {
                if (text[at] < ' ') throw Wrong();
                read.Append(text[at] == '\\' ? ReadEscape() : text[at]);
            }
            if (at++ >= text.Length) throw Wrong();
            return read.ToString();
        }

        char ReadEscape()
        {
            const string Letters = "\"\\/bfnrt", Meanings = "\"\\/\b\f\n\r\t";
            if (++at >= text.Length) throw Wrong();
            if (text[at] != 'u')
            {
                var index = Letters.IndexOf(text[at]);
                if (index < 0) throw Wrong();
                return Meanings[index];
            }
            ushort code;
            if (at + 4 >= text.Length || !ushort.TryParse(text.Substring(at + 1, 4), NumberStyles.AllowHexSpecifier, CultureInfo.InvariantCulture, out code)) throw Wrong();
            at += 4;
            return (char)code;
        }

        object ReadWord(string word, object value)
        {
            if (string.CompareOrdinal(text, at, word, 0, word.Length) != 0) throw Wrong();
            at += word.Length;
            return value;
        }

        object ReadNumber()
        {
            var begin = at;
            while (at < text.Length && "+-.0123456789eE".IndexOf(text[at]) >= 0) at++;
            var number = text.Substring(begin, at - begin);
            long whole;
            if (long.TryParse(number, NumberStyles.AllowLeadingSign, CultureInfo.InvariantCulture, out whole)) return whole;
            double real;
            if (double.TryParse(number, NumberStyles.Float, CultureInfo.InvariantCulture, out real)) return real;
            throw Wrong();
        }

        /// <summary>The next sign that is no blank; 0 at the end.</summary>
        char Peek()
        {
            while (at < text.Length && " \t\r\n".IndexOf(text[at]) >= 0) at++;
            return at < text.Length ? text[at] : '\0';
        }

        bool Skip(char sign)
        {
            if (Peek() != sign) return false;
            at++;
            return true;
        }

        FormatException Wrong() => new FormatException($"no JSON at {at}");
    }
}
